//! Clients that retry: attempts as the server counts them, the identities, and the three times.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use posthaste_evaluation::{Effort, FindError, LocalRunner, find};
use posthaste_load::{
    Backoff, Connections, Data, Outcome, Pace, Plan, RequestSpec, RetryPolicy, Run, run,
};
use posthaste_units::{Seed, Span};

use crate::server::{answering, carried_out, ok, pause, plan, serve};

/// Attempts that a server received, by request.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<BTreeMap<String, u64>>>);

impl Received {
    /// Counts an attempt of the request with this line, and returns its number from 1.
    fn count(&self, line: &str) -> u64 {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(line.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn total(&self) -> u64 {
        self.0.lock().unwrap().values().sum()
    }

    /// Requests by number of attempts: with one, with two, and so on.
    fn by_number(&self) -> Vec<u64> {
        let counts = self.0.lock().unwrap();
        let most = counts.values().copied().max().unwrap_or(0);
        let with = |number| counts.values().filter(|count| **count == number).count() as u64;
        (1..=most).map(with).collect()
    }
}

/// Starts a server that passes each request line, with the number of its attempt, to `answer`. Without an answer it
/// closes the connection.
fn counting(
    answer: impl Fn(&str, u64) -> Option<String> + Send + Sync + Clone + 'static,
) -> (SocketAddr, Received) {
    let received = Received::default();
    let counts = received.clone();
    let address = serve(move |mut stream: TcpStream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut request = String::new();
        while let Some(Ok(line)) = lines.next() {
            if request.is_empty() {
                request = line;
            } else if line.is_empty() {
                let request = std::mem::take(&mut request);
                let number = counts.count(&request);
                match answer(&request, number) {
                    Some(reply) if stream.write_all(reply.as_bytes()).is_ok() => {}
                    _ => return,
                }
            }
        }
    });
    (address, received)
}

fn status(status: u16) -> String {
    format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n")
}

/// A plan in which each request has a path of its own.
fn numbered(address: SocketAddr, per_second: f64, millis: u64, limit: u32) -> Plan {
    let mut plan = plan(address, per_second, millis);
    let rows: String = (0..10_000).map(|row| format!("{row}\n")).collect();
    plan.data = Data::read(format!("row\n{rows}").as_bytes()).unwrap();
    plan.requests = vec![RequestSpec::get(format!("http://{address}/{{{{row}}}}"))];
    plan.retries = Some(RetryPolicy {
        limit,
        backoff: Backoff::None,
    });
    plan
}

fn exponential(millis: u64) -> Backoff {
    Backoff::Exponential {
        base: Span::from_millis(millis),
    }
}

/// Runs the plan, and compares the attempts with those that the server counted.
fn agrees(plan: &Plan, received: &Received) -> Run {
    let run = carried_out(plan);
    let attempts = &run.attempts;
    assert_eq!(attempts.total(), received.total());
    assert_eq!(attempts.requests, received.by_number());
    assert_eq!(attempts.requests.iter().sum::<u64>(), run.intended);
    assert_eq!(run.lateness.count(), run.intended);
    assert_eq!(
        attempts.retry_lateness.count(),
        attempts.total() - run.intended
    );
    run
}

#[test]
fn each_attempt_is_counted_and_the_last_one_decides() {
    for connections in [Connections::New, Connections::KeepAlive] {
        let (address, received) = counting(|_, number| match number {
            1 => Some(status(503)),
            2 => Some(status(429)),
            _ => Some(ok("at last")),
        });
        let mut plan = numbered(address, 200.0, 200, 3);
        plan.connections = connections;
        let run = agrees(&plan, &received);
        assert_eq!(run.outcomes[Outcome::Ok], 40, "{:?}", run.reasons);
        assert_eq!(run.attempts.requests, [0, 0, 40]);
        assert_eq!(run.attempts.outcomes[Outcome::StatusError], 80);
        assert_eq!(run.statuses, [(200, 40), (429, 40), (503, 40)].into());
        // The last reply may come after the measured time, and earlier replies never count.
        assert!(run.completed <= run.intended && run.sent <= run.intended);
        // Each reply has a service time.
        assert_eq!(run.service.histogram().count(), 120);
        assert_eq!(run.response.histogram().count(), 40);
    }
}

#[test]
fn a_status_that_no_retry_changes_is_final() {
    let (address, received) = counting(|line, _| {
        let row = line.trim_start_matches("GET /").split(' ').next().unwrap();
        let statuses = [400, 402, 403, 404, 501];
        Some(status(statuses[row.parse::<usize>().unwrap() % 5]))
    });
    let run = agrees(&numbered(address, 200.0, 100, 5), &received);
    assert_eq!(run.outcomes[Outcome::StatusError], 20);
    assert_eq!(run.attempts.requests, [20]);
}

#[test]
fn a_failed_request_has_the_outcome_of_its_last_attempt() {
    let (address, received) = counting(|_, number| (number < 3).then(|| status(500)));
    let run = agrees(&numbered(address, 200.0, 100, 2), &received);
    assert_eq!(run.outcomes[Outcome::Reset], 20, "{:?}", run.outcomes);
    assert_eq!(run.attempts.outcomes[Outcome::StatusError], 40);
    assert_eq!(run.attempts.outcomes[Outcome::Reset], 20);
    // Longer than any bound.
    assert_eq!(run.response.distribution().censored(), 20);
}

#[test]
fn refused_connections_are_tried_again() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let run = carried_out(&numbered(address, 200.0, 100, 4));
    assert_eq!(run.outcomes[Outcome::Refused], 20, "{:?}", run.reasons);
    assert_eq!(run.attempts.outcomes[Outcome::Refused], 100);
    assert_eq!(run.connections, 100);
}

#[test]
fn response_time_counts_from_the_first_due_time() {
    let (address, received) = counting(|_, number| {
        pause(40);
        Some(if number < 3 { status(503) } else { ok("third") })
    });
    let mut plan = numbered(address, 100.0, 100, 2);
    plan.retries = Some(RetryPolicy {
        limit: 2,
        backoff: exponential(50),
    });
    let run = agrees(&plan, &received);
    assert_eq!(run.outcomes[Outcome::Ok], 10);
    let least = run.response.histogram().quantile(0.0);
    assert!(least >= Span::from_millis(119), "{least}");
    let service = run.service.histogram();
    assert_eq!(service.count(), 30);
    assert!(service.quantile(0.0) >= Span::from_millis(39));
    assert!(service.mean() * 3 < run.response.histogram().mean() + Span::from_millis(1));
}

#[test]
fn every_thread_count_makes_the_same_attempts() {
    for threads in [1, 3] {
        let (address, received) = counting(|line, number| {
            let fails = line.len() as u64 % 4;
            Some(if number > fails {
                ok("fine")
            } else {
                status(504)
            })
        });
        let mut plan = numbered(address, 600.0, 200, 3);
        plan.threads = threads;
        let run = agrees(&plan, &received);
        assert_eq!((run.intended, run.outcomes[Outcome::Ok]), (120, 120));
        // Ten rows of one digit, 90 of two, 20 of three; "GET / HTTP/1.1" and the digits decide.
        assert_eq!(run.attempts.requests, [90, 20, 0, 10]);
    }
}

#[test]
fn a_closed_client_retries_before_its_next_request() {
    let (address, received) = counting(|_, number| match number {
        1 => Some(status(503)),
        _ => Some(ok("second")),
    });
    let mut plan = numbered(address, 1.0, 1, 1);
    plan.pace = Pace::Closed {
        clients: 1,
        length: Span::from_millis(300),
    };
    plan.requests[0].think = Span::from_millis(5);
    let run = agrees(&plan, &received);
    assert!(run.intended > 1, "{}", run.intended);
    assert_eq!(run.outcomes[Outcome::Ok], run.intended);
    assert_eq!(run.attempts.total(), 2 * run.intended);
}

#[test]
fn a_stopped_run_counts_requests_between_two_attempts() {
    let address = answering(status(503), false);
    let mut plan = numbered(address, 100.0, 60_000, 1);
    // Waits so long that nearly all requests are between two attempts.
    plan.retries = Some(RetryPolicy {
        limit: 1,
        backoff: exponential(30_000),
    });
    let stop = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &stop, &mut ()).unwrap());
        pause(500);
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert_eq!(run.intended, run.outcomes.total());
    assert!(run.outcomes[Outcome::InFlight] > 0, "{:?}", run.outcomes);
    let attempts = &run.attempts;
    let ended = attempts.outcomes[Outcome::StatusError];
    assert!(ended >= run.intended / 2, "{ended} of {}", run.intended);
    assert_eq!(attempts.requests.iter().sum::<u64>(), run.intended);
}

#[test]
fn a_warm_up_retries_and_is_not_counted() {
    let (address, received) = counting(|_, number| match number {
        1 => Some(status(503)),
        _ => Some(ok("second")),
    });
    let mut plan = numbered(address, 200.0, 100, 1);
    plan.warm_up = Span::from_millis(100);
    let run = carried_out(&plan);
    assert_eq!((run.warm_up, run.intended), (20, 20));
    assert_eq!(run.attempts.requests, [0, 20]);
    assert_eq!(received.total(), 80);
}

#[test]
fn a_retry_without_a_free_connection_is_the_generators_limit() {
    // The first request is rejected. During its back-off the second takes the only connection, and never gets a reply.
    let (address, _) = counting(|line, _| {
        if line.starts_with("GET /0 ") {
            return Some(status(503));
        }
        pause(60_000);
        None
    });
    let mut plan = numbered(address, 20.0, 100, 1);
    plan.connection_limit = 1;
    plan.timeout = Span::from_secs(2);
    // With this seed the back-off is 957 ms.
    plan.seed = Seed(4);
    plan.retries = Some(RetryPolicy {
        limit: 1,
        backoff: exponential(1_000),
    });
    let run = carried_out(&plan);
    assert_eq!(run.intended, 2);
    assert_eq!(run.outcomes[Outcome::Dropped], 1, "{:?}", run.outcomes);
    assert_eq!(run.outcomes[Outcome::TimedOut], 1, "{:?}", run.outcomes);
    let attempts = &run.attempts;
    assert_eq!(attempts.requests, [0, 2]);
    assert_eq!(attempts.outcomes[Outcome::StatusError], 1);
    assert_eq!(attempts.outcomes[Outcome::TimedOut], 2);
    // The dropped retry was not sent, that of the second request was.
    assert_eq!(attempts.retry_lateness.count(), 1);
    let report = posthaste_evaluation::report::Report::new(&plan, &run);
    assert!(report.generator.limited, "{:?}", report.generator);
}

/// A server that serves a fixed number of requests and rejects the rest, as one far beyond its capacity does.
#[test]
fn a_retry_storm_multiplies_the_attempts() {
    const CAPACITY: u64 = 30;
    for backoff in [Backoff::None, exponential(20)] {
        let served = Arc::new(AtomicU64::new(0));
        let (address, received) = counting(move |_, _| {
            let is_served = served.fetch_add(1, Ordering::Relaxed) < CAPACITY;
            Some(if is_served { ok("served") } else { status(503) })
        });
        let mut plan = numbered(address, 500.0, 400, 3);
        plan.retries = Some(RetryPolicy { limit: 3, backoff });
        let run = agrees(&plan, &received);
        assert_eq!((run.intended, run.outcomes[Outcome::Ok]), (200, CAPACITY));
        // All others had all four attempts.
        let failed = 200 - CAPACITY;
        assert_eq!(run.outcomes[Outcome::StatusError], failed);
        assert_eq!(run.attempts.requests[3], failed);
        assert_eq!(run.attempts.outcomes[Outcome::StatusError], 4 * failed);
        assert_eq!(run.attempts.total(), 4 * failed + CAPACITY);
    }
}

#[test]
fn a_search_refuses_retries() {
    let plan = numbered(answering(ok("fine"), false), 1.0, 1, 3);
    let objective = "p99<2s".parse().unwrap();
    let stop = AtomicBool::new(false);
    let found = find(
        &plan,
        &objective,
        Effort::default(),
        &mut LocalRunner(&stop),
        &mut |_| (),
    );
    assert!(matches!(found, Err(FindError::Retries)), "{found:?}");
}

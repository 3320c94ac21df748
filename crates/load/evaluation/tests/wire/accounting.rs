//! The identity of outcomes, the three times, and the clean end.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use posthaste_evaluation::report::{Report, TextTimes, page, text};
use posthaste_load::{
    Arrivals, Connections, Data, Outcome, Pace, Portion, RateStep, RequestSpec, run,
};
use posthaste_units::{Rate, Span};

use crate::server::{answering, carried_out, ok, pause, plan, read_request, serve};

#[test]
fn a_stopped_run_counts_what_was_in_flight() {
    let silent = serve(|mut stream| {
        read_request(&mut stream);
        pause(60_000);
    });
    let stop = AtomicBool::new(false);
    let mut plan = plan(silent, 200.0, 10_000);
    plan.timeout = Span::from_secs(60);
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &stop, &mut ()).unwrap());
        pause(1500);
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert!(run.stopped && run.duration < Span::from_secs(30));
    assert_eq!(run.intended, run.outcomes.total());
    assert_eq!(run.outcomes[Outcome::InFlight], run.intended);
    assert!(run.intended >= 20, "{}", run.intended);
}

#[test]
fn a_stopped_run_counts_due_requests_that_were_not_sent() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // More than one loop can send.
    let mut plan = plan(silent.local_addr().unwrap(), 2_000_000.0, 60_000);
    plan.connections = Connections::New;
    let stop = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &stop, &mut ()).unwrap());
        // The run has begun, however late the machine was.
        let _first = silent.accept().unwrap();
        thread::sleep(Duration::from_millis(400));
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    // Some ten thousand were begun.
    assert!(run.intended > 100_000, "{}", run.intended);
    assert_eq!(run.outcomes.total(), run.intended);
    assert!(run.outcomes[Outcome::InFlight] > 0);
    // Requests not begun were not attempted, and the rate excludes them.
    assert!(run.unbegun > 50_000, "{}", run.unbegun);
    assert_eq!(run.attempted(), run.lateness.count());
    assert!(run.sent_rate() < 0.5 * run.offered_rate());
}

#[test]
fn every_thread_count_sends_the_whole_schedule() {
    let address = answering(ok("fine"), false);
    for threads in [1, 3] {
        let mut plan = plan(address, 1000.0, 200);
        plan.threads = threads;
        assert_eq!(carried_out(&plan).intended, 200);
    }
}

#[test]
fn a_warm_up_is_sent_and_not_counted() {
    let address = answering(ok("fine"), false);
    let mut plan = plan(address, 500.0, 200);
    plan.warm_up = Span::from_millis(100);
    let run = carried_out(&plan);
    assert_eq!((run.warm_up, run.intended), (50, 100));
    assert_eq!(run.response.histogram().count(), 100);
    assert_eq!(run.lateness.count(), 100);
}

#[test]
fn a_warm_up_takes_the_beginning_of_a_trace() {
    let address = answering(ok("fine"), false);
    let mut plan = plan(address, 1.0, 1);
    plan.pace = Pace::Open {
        arrivals: Arrivals::Trace((0..=30).map(|n| Span::from_millis(10 * n)).collect()),
        steps: Vec::new(),
    };
    plan.warm_up = Span::from_millis(100);
    let run = carried_out(&plan);
    assert_eq!((run.warm_up, run.intended), (10, 21));
    // From the end of the warm-up to the due time of the next request.
    assert_eq!(run.duration, Span::from_millis(210));
    assert!((run.offered_rate() - 100.0).abs() < 1e-9);
}

#[test]
fn a_trace_of_one_moment_ends_with_its_last_reply() {
    let address = answering(ok("fine"), false);
    let mut plan = plan(address, 1.0, 1);
    plan.pace = Pace::Open {
        arrivals: Arrivals::Trace([Span::ZERO; 5].into()),
        steps: Vec::new(),
    };
    let run = carried_out(&plan);
    assert_eq!((run.intended, run.completed), (5, 5));
    assert!(
        run.duration >= run.response.histogram().max(),
        "{}",
        run.duration
    );
}

#[test]
fn closed_clients_wait_and_think() {
    let slow = serve(|mut stream| {
        while read_request(&mut stream) {
            pause(20);
            use std::io::Write as _;
            let _ = stream.write_all(ok("after 20 ms").as_bytes());
        }
    });
    let mut plan = plan(slow, 1.0, 1);
    plan.pace = Pace::Closed {
        clients: 4,
        length: Span::from_secs(1),
    };
    plan.requests[0].think = Span::from_millis(20);
    let run = carried_out(&plan);
    // Four clients, 40 ms per request, 1 s: at most 100, and far fewer on a busy machine.
    assert!((8..=104).contains(&run.intended), "{}", run.intended);
    assert_eq!(run.outcomes[Outcome::Ok], run.intended);
}

#[test]
fn the_phases_of_replies_add_up_to_their_time() {
    let address = serve(|mut stream| {
        while read_request(&mut stream) {
            pause(50);
            use std::io::Write as _;
            let _ = stream.write_all(ok("50 ms").as_bytes());
        }
    });
    let mut plan = plan(address, 100.0, 100);
    plan.timeout = Span::from_secs(30);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 10);
    let service = run.service.histogram();
    assert!(service.quantile(0.5) >= Span::from_millis(50));
    let phases: Span = run
        .phases
        .iter()
        .filter(|(name, _)| *name != "dns")
        .map(|(_, h)| h.mean() * h.count())
        .sum();
    let whole = service.mean() * service.count();
    let apart = whole.as_secs_f64() - phases.as_secs_f64();
    assert!(
        apart.abs() < 0.001 * whole.as_secs_f64() + 1e-5,
        "phases {phases} service {whole}"
    );
}

#[test]
fn steps_and_requests_are_reported_apart() {
    let address = answering(ok("fine"), false);
    let rate = |per_second| Rate::per_second(per_second).unwrap();
    let mut plan = plan(address, 1.0, 1);
    let length = Span::from_millis(200);
    plan.pace = Pace::Open {
        arrivals: Arrivals::Poisson,
        steps: vec![
            RateStep::steady(rate(100.0), length),
            RateStep::steady(rate(400.0), length),
        ],
    };
    let mut second = RequestSpec::get(format!("http://{address}/b"));
    second.weight = 3.0;
    plan.requests.push(second);
    let run = carried_out(&plan);
    let total = |portions: &[Portion]| {
        portions
            .iter()
            .map(|p| p.part.outcomes.total())
            .sum::<u64>()
    };
    assert_eq!((run.steps.len(), total(&run.steps)), (2, run.intended));
    assert_eq!(
        (run.requests.len(), total(&run.requests)),
        (2, run.intended)
    );
    let share = run.requests[1].part.outcomes.total() as f64 / run.intended as f64;
    assert!((0.6..0.9).contains(&share), "{share}");
}

#[test]
fn rows_of_data_are_each_used_once_in_order() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen_there = seen.clone();
    let address = serve(move |mut stream| {
        use std::io::{BufRead as _, BufReader, Write as _};
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            if line.starts_with("GET ") {
                seen_there.lock().unwrap().push(line);
            } else if line.is_empty() {
                let _ = stream.write_all(ok("fine").as_bytes());
            }
        }
    });
    let mut plan = plan(address, 200.0, 50);
    plan.data = Data::read("isbn\n1\n2\n3\n".as_bytes()).unwrap();
    plan.connections = Connections::KeepAlive;
    plan.requests = vec![RequestSpec::get(format!(
        "http://{address}/page/{{{{isbn}}}}"
    ))];
    carried_out(&plan);
    let mut rows = seen.lock().unwrap().clone();
    rows.sort();
    let count = |isbn: u32| {
        rows.iter()
            .filter(|row| **row == format!("GET /page/{isbn} HTTP/1.1"))
            .count()
    };
    assert_eq!((count(1), count(2), count(3)), (4, 3, 3));
}

/// At 1,000,000,000/s the due requests are counted by stretches: the run ends soon after its plan.
#[test]
fn a_rate_beyond_all_sending_is_counted_whole() {
    let server = answering(ok("x"), false);
    let mut plan = plan(server, 1e9, 200);
    plan.threads = 2;
    let run = carried_out(&plan);
    assert_eq!(run.intended, 200_000_000);
    assert!(
        run.outcomes[Outcome::Dropped] > 190_000_000,
        "{:?}",
        run.outcomes
    );
    assert!(run.attempts.total() == run.intended);
}

#[test]
fn redirects_are_counted_with_their_first_target() {
    let reply =
        "HTTP/1.1 302 Found\r\nLocation: https://shop.example/login\r\nContent-Length: 0\r\n\r\n";
    let plan = plan(answering(reply, false), 100.0, 100);
    let run = carried_out(&plan);
    assert_eq!(run.outcomes[Outcome::Ok], 10);
    let mut report = Report::new(&plan, &run);
    assert_eq!(report.redirects(), 10);
    report.check(&["redirects<1%".parse().unwrap()], &run, false);
    assert_eq!(report.assertions[0].holds, Some(false));
    let text = text(&report, TextTimes::Differing);
    let last = text.lines().last().unwrap();
    assert!(
        last.contains(
            "1 FAIL; 10 REDIRECTED, not followed, first: redirect to https://shop.example/login"
        ),
        "{text}"
    );
    let page = page(&report, &run);
    assert!(page.contains("10 REDIRECTED, not followed"), "{page}");
}

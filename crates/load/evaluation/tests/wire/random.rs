//! Random servers and random plans: each request has one outcome, also if the run is stopped at any turn.
//!
//! Here are the variations of a plan and HTTP/1; `http2/random` has the servers of HTTP/2. `POSTHASTE_SEEDS=10000` runs
//! ten thousand of each.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use posthaste_load::{
    Connections, EventFormat, EventPlan, Outcome, Pace, Plan, RequestSpec, RetryPolicy, Run, run,
};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

use crate::server::{plan as basic_plan, serve};

/// Runs at the same time, each with a server of its own. They sleep most of the time.
const WORKERS: u64 = 6;
/// Requests of an open loop without a warm-up.
const REQUESTS: u64 = 20;
/// Number of random servers for each protocol, unless `POSTHASTE_SEEDS` says otherwise.
const SEEDS: u64 = 300;

/// The run in progress, as its server sees it.
#[derive(Default)]
pub(crate) struct CurrentRun {
    seed: AtomicU64,
    stop: AtomicBool,
    /// Requests of the run that reached the server.
    arrived: AtomicU64,
    /// The run is stopped when this many have arrived. 0: not by a request.
    stop_at: AtomicU64,
}

impl CurrentRun {
    /// The seed of the run in progress.
    pub(crate) fn seed(&self) -> Seed {
        Seed(self.seed.load(Ordering::Relaxed))
    }

    /// Counts a request that reached the server, and stops the run if it is the one to stop at.
    pub(crate) fn arrive(&self) {
        let number = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.stop_at.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Names the seed of a run that panics.
struct Named<'n>(&'n str, u64);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, seed {}", self.0, self.1);
        }
    }
}

/// Runs all seeds. `start` starts a server that reads its current run; `vary` changes a plan for it by a seed.
pub(crate) fn each_request_has_one_outcome(
    protocol: &'static str,
    start: impl Fn(Arc<CurrentRun>) -> SocketAddr + Sync,
    vary: impl Fn(&mut Plan, Seed) + Sync,
) {
    let seeds =
        std::env::var("POSTHASTE_SEEDS").map_or(SEEDS, |text| text.parse().expect("a number"));
    let worker = |worker: u64| {
        let current = Arc::<CurrentRun>::default();
        let address = start(Arc::clone(&current));
        for number in (worker..seeds).step_by(WORKERS as usize) {
            let _named = Named(protocol, number);
            let mut plan = random_plan(address, Seed(number));
            vary(&mut plan, Seed(number));
            run_one(&plan, &current, number);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let worker = &worker;
            scope.spawn(move || worker(number));
        }
    });
}

/// A plan of twenty requests, unless its loop is closed, with random clients, pace, retries and events.
fn random_plan(address: SocketAddr, seed: Seed) -> Plan {
    let mut random = seed.stream("plan");
    let millis = [8, 10, 20][random.random_range(0..3)];
    let mut plan = basic_plan(address, REQUESTS as f64 * 1e3 / millis as f64, millis);
    plan.seed = seed;
    plan.timeout = Span::from_millis(random.random_range(5..60));
    plan.threads = random.random_range(1..3);
    if random.random_bool(0.2) {
        plan.pace = Pace::Closed {
            clients: random.random_range(1..6),
            length: Span::from_millis(millis),
        };
    }
    if random.random_bool(0.2) {
        plan.warm_up = Span::from_millis(random.random_range(1..10));
    }
    if random.random_bool(0.3) {
        plan.connections = Connections::New;
    }
    if random.random_bool(0.3) {
        plan.connection_limit = random.random_range(plan.threads..12);
    }
    if random.random_bool(0.3) {
        let url = format!("http://{address}/");
        let body = "b".repeat(random.random_range(0..9_000));
        plan.requests = vec![RequestSpec::post(url, "text/plain", body)];
    }
    if random.random_bool(0.3) {
        let backoff = posthaste_load::Backoff::None;
        let limit = random.random_range(1..4);
        plan.retries = Some(RetryPolicy { limit, backoff });
    }
    if random.random_bool(0.3) {
        plan.events = Some(EventPlan {
            format: [EventFormat::Sse, EventFormat::JsonLines][random.random_range(0..2)],
            end_mark: random.random_bool(0.5).then(|| "z".to_owned()),
        });
    }
    plan
}

/// Carries out a plan, perhaps stopped at a request or after a time, and checks its sums.
fn run_one(plan: &Plan, current: &CurrentRun, number: u64) {
    let mut random = Seed(number).stream("stop");
    let stops_at = random.random_bool(0.25);
    let after = (!stops_at && random.random_bool(0.3))
        .then(|| Duration::from_micros(random.random_range(0..60_000)));
    let last = if stops_at {
        random.random_range(1..25)
    } else {
        0
    };
    current.seed.store(number, Ordering::Relaxed);
    current.stop.store(false, Ordering::Relaxed);
    current.arrived.store(0, Ordering::Relaxed);
    current.stop_at.store(last, Ordering::Relaxed);
    let run = std::thread::scope(|scope| {
        if let Some(after) = after {
            scope.spawn(move || {
                std::thread::sleep(after);
                current.stop.store(true, Ordering::Relaxed);
            });
        }
        // The identities of the times, attempts and events are asserted in the run itself.
        run(plan, &current.stop, &mut ()).unwrap()
    });
    check(plan, &run, after.is_some() || stops_at);
    let complete = [Outcome::Ok, Outcome::StatusError].map(|one| run.outcomes[one]);
    let arrived = current.arrived.load(Ordering::Relaxed);
    assert!(complete.iter().sum::<u64>() <= arrived, "{arrived} arrived");
}

fn check(plan: &Plan, run: &Run, may_stop: bool) {
    assert_eq!(run.intended, run.outcomes.total());
    assert_eq!(run.response.distribution().count(), run.intended);
    assert!(run.attempted() <= run.intended);
    if plan.events.is_some() {
        let first = run.events.first.distribution();
        assert_eq!(first.count(), run.intended);
        let marks = run.events.with_end_mark + run.events.without_end_mark;
        assert!(marks <= run.intended);
    }
    if may_stop {
        return;
    }
    assert_eq!((run.stopped, run.unbegun), (false, 0));
    assert_eq!(run.outcomes[Outcome::InFlight], 0);
    if let Pace::Open { .. } = plan.pace {
        assert_eq!(run.intended, REQUESTS);
    }
}

/// The act of a random server for a request.
enum ServerAction {
    /// Sends these bytes in pieces of this size, and keeps the connection.
    Send(Vec<u8>, usize),
    /// Sends these bytes and closes.
    Close(Vec<u8>),
    /// Waits for the client to close.
    Ignore,
}

/// Chooses the act of a random server.
fn act(seed: Seed, connection: u64, number: u64) -> ServerAction {
    let mut random = seed
        .numbered("act", connection * 1_000 + number)
        .stream("choice");
    let body = vec![b'z'; random.random_range(0..4_000)];
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes();
    let length = format!("Content-Length: {}\r\n", body.len());
    let whole = [head(&length), body.clone()].concat();
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n"].concat();
    let chunked = |rest: &[u8]| [&head("Transfer-Encoding: chunked\r\n"), rest].concat();
    let piece = random.random_range(1..2_000);
    match random.random_range(0..30) {
        0 => ServerAction::Ignore,
        1 => ServerAction::Close(Vec::new()),
        2 => ServerAction::Close(whole[..random.random_range(0..whole.len())].to_vec()),
        3 => ServerAction::Send(b"SPDY/9 fine\r\n\r\n".to_vec(), piece),
        4 => ServerAction::Send((0..40).map(|_| random.random()).collect(), piece),
        5 => ServerAction::Send(
            chunked(&[&chunk[..], b"0\r\nTrailer: t\r\n\r\n"].concat()),
            piece,
        ),
        6 => ServerAction::Close(chunked(&chunk)),
        7 => ServerAction::Send(chunked(b"-1\r\n"), piece),
        8 => ServerAction::Close([head("").as_slice(), &body].concat()),
        9 => ServerAction::Close(whole),
        10 => ServerAction::Send([b"HTTP/1.1 103 Early\r\n\r\n", &whole[..]].concat(), piece),
        11 => ServerAction::Send([&whole[..], &whole].concat(), piece),
        12 => ServerAction::Send(
            b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec(),
            piece,
        ),
        13 => ServerAction::Send(b"HTTP/1.1 204 None\r\n\r\n".to_vec(), piece),
        14 => ServerAction::Send(head("Content-Length: 3\r\nContent-Length: 4\r\n"), piece),
        15 => ServerAction::Send(whole[..whole.len() - 1].to_vec(), piece),
        16 => ServerAction::Close(
            b"HTTP/1.0 200 OK\r\n\r\ndata: 1\n\ndata: 2\n\ndata: z\n\n".to_vec(),
        ),
        17 => ServerAction::Send(
            chunked(b"9\r\ndata: 1\n\n\r\n9\r\ndata: z\n\n\r\n0\r\n\r\n"),
            piece,
        ),
        18 => ServerAction::Send(head("Connection: close\r\nContent-Length: 0\r\n"), piece),
        _ => ServerAction::Send(whole, piece),
    }
}

/// Acts for each request of a connection. Bodies are read if `reads`, otherwise they are taken for requests.
fn hold(stream: &mut TcpStream, current: &CurrentRun, connection: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut random = current
        .seed()
        .numbered("connection", connection)
        .stream("delays");
    let mut number = 0;
    while let Some(body) = read_head(stream)? {
        // An early answer leaves the body unread, and the connection is reset at its end.
        let reads = random.random_bool(0.9);
        if reads {
            std::io::copy(&mut (&*stream).take(body), &mut std::io::sink())?;
        }
        current.arrive();
        std::thread::sleep(Duration::from_micros(random.random_range(0..8_000)));
        match act(current.seed(), connection, number) {
            ServerAction::Send(bytes, piece) => {
                for piece in bytes.chunks(piece) {
                    stream.write_all(piece)?;
                }
            }
            ServerAction::Close(bytes) => return stream.write_all(&bytes),
            ServerAction::Ignore => {}
        }
        number += 1;
        if !reads {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads the head of a request, and returns the length of its body. `None` at the end of the stream.
fn read_head(stream: &mut TcpStream) -> std::io::Result<Option<u64>> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        seen.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&seen).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    Ok(Some(length.unwrap_or_default()))
}

#[test]
fn every_request_has_one_outcome_whatever_an_http1_server_does() {
    let start = |current: Arc<CurrentRun>| {
        let connections = Arc::<AtomicU64>::default();
        serve(move |mut stream: TcpStream| {
            let connection = connections.fetch_add(1, Ordering::Relaxed);
            // An end of the client is no error.
            let _ = hold(&mut stream, &current, connection);
        })
    };
    each_request_has_one_outcome("HTTP/1", start, |_, _| ());
}

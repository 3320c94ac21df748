//! Random servers: intended = sum of outcomes, and the server's log agrees with the attempts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_load::{Multiplexing, Outcome, WhenFull, WhenRejected, run};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

use super::plan;
use super::server::{
    DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS,
    STATUS_200, STATUS_500, ServerAct, StreamServer, frame, goaway, reply, reset, setting,
};

/// Chooses the act of a random server for a request.
fn act(seed: Seed, connection: usize, number: usize, stream: u32) -> ServerAct {
    let mut random = seed
        .numbered("act", (connection * 1_000 + number) as u64)
        .stream("choice");
    let delay = Duration::from_millis(random.random_range(0..20));
    let bytes = match random.random_range(0..24) {
        0 => return ServerAct::Ignore,
        1 => return ServerAct::Close(frame(HEADERS, END_HEADERS, stream, STATUS_200)),
        2 => reset(stream, 7),
        3 => reset(stream, random.random_range(0..16)),
        4 => goaway(stream, 0),
        5 => goaway(stream.saturating_sub(2), 11),
        6 => [
            goaway(0x7fff_ffff, 0),
            reply(stream, b"x"),
            goaway(stream, 0),
        ]
        .concat(),
        7 => frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_500),
        8 => frame(DATA, END_STREAM, stream, b"no head"),
        9 => frame(HEADERS, END_HEADERS, stream, &[0xff; 7]),
        10 => [
            frame(HEADERS, END_HEADERS, stream, &[0x48, 3, b'1', b'0', b'3']),
            reply(stream, b"after an interim reply"),
        ]
        .concat(),
        11 => [
            frame(HEADERS, END_HEADERS, stream, STATUS_200),
            frame(DATA, 0, stream, &[b'y'; 9_000]),
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                stream,
                &[0x00, 1, b't', 1, b'v'],
            ),
        ]
        .concat(),
        12 => [reply(stream, b"twice"), reply(stream, b"twice")].concat(),
        _ => reply(stream, &vec![b'z'; random.random_range(0..20_000)]),
    };
    ServerAct::Send(bytes, delay)
}

#[test]
fn every_request_has_one_outcome_whatever_the_server_does() {
    for number in 0..40 {
        let seed = Seed(number);
        let mut random = seed.stream("plan");
        let mut settings = Vec::new();
        if random.random_bool(0.5) {
            settings.extend(setting(MAX_CONCURRENT_STREAMS, random.random_range(0..20)));
        }
        if random.random_bool(0.3) {
            settings.extend(setting(INITIAL_WINDOW_SIZE, random.random_range(0..2_000)));
        }
        let server = StreamServer::start(settings, move |arrival| {
            act(seed, arrival.connection, arrival.number, arrival.stream)
        });
        let options = Multiplexing {
            connections: random.random_range(1..4),
            streams: random.random_bool(0.3).then(|| random.random_range(1..10)),
            when_full: [WhenFull::Wait, WhenFull::Open, WhenFull::Drop][random.random_range(0..3)],
            rejected: [WhenRejected::Count, WhenRejected::Resend][random.random_range(0..2)],
        };
        let mut plan = plan(&server, 2_000.0, 50, options);
        plan.timeout = Span::from_millis(random.random_range(30..300));
        if random.random_bool(0.4) {
            let url = format!("http://{}/", server.address);
            let body = "b".repeat(random.random_range(0..9_000));
            plan.requests = vec![posthaste_load::RequestSpec::post(url, "text/plain", body)];
        }
        let stop = AtomicBool::new(false);
        let stops = random.random_bool(0.3);
        let after = Duration::from_millis(random.random_range(0..80));
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(after);
                stop.store(stops, Ordering::Relaxed);
            });
            // Each identity is asserted in the run itself.
            run(&plan, &stop, &mut ()).unwrap()
        });
        assert_eq!(run.intended, run.outcomes.total(), "seed {number}");
        if !stops {
            assert_eq!(run.intended, 100, "seed {number}");
            assert_eq!(run.outcomes[Outcome::InFlight], 0, "seed {number}");
        }
        let complete = [Outcome::Ok, Outcome::StatusError].map(|one| run.outcomes[one]);
        let received = server.log().requests.len() as u64;
        assert!(complete.iter().sum::<u64>() <= received, "seed {number}");
    }
}

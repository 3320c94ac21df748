//! Random servers of HTTP/3 on random lines, for the property of `random`: each request has one outcome.

use std::sync::Arc;
use std::time::Duration;

use posthaste_load::{Multiplexing, Plan, Protocol, QuicOptions, WhenFull, WhenRejected};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

use super::server::{
    ArrivedRequest, CONTROL, DATA, GOAWAY, Greeting, HEADERS, LossyLine, ReplyAct, STATUS_200,
    STATUS_500, ServerScript, Tickets, frame, reply,
};
use crate::random::{CurrentRun, each_request_has_one_outcome};

/// Chooses the act of a random server for a request.
fn act(seed: Seed, arrival: &ArrivedRequest) -> ReplyAct {
    let mut random = seed
        .numbered("act", (arrival.connection * 1_000 + arrival.number) as u64)
        .stream("choice");
    let head = frame(HEADERS, STATUS_200);
    let bytes = match random.random_range(0..30) {
        0 => return ReplyAct::Ignore,
        1 => return ReplyAct::Begin(head),
        2 => return ReplyAct::Reset(head, 0x102),
        3 => return ReplyAct::Reset(Vec::new(), 0x100 + random.random_range(0..17)),
        4 => return ReplyAct::Control(frame(GOAWAY, &[4 * random.random_range(0..15)])),
        5 => return ReplyAct::Control(frame(DATA, b"x")),
        6 => return ReplyAct::Stream(CONTROL.to_vec()),
        7 => return ReplyAct::Stop(0x100 + random.random_range(0..17)),
        8 => return ReplyAct::Close(0x100 + random.random_range(0..17)),
        9 => frame(HEADERS, STATUS_500),
        10 => frame(DATA, b"no head"),
        11 => frame(HEADERS, &[0xff; 7]),
        12 => [head, frame(DATA, &[b'y'; 9_000])].concat(),
        13 => vec![HEADERS, 40, 0],
        // Stateless resets.
        14 => return ReplyAct::Restart,
        _ => reply(&vec![b'z'; random.random_range(0..20_000)]),
    };
    ReplyAct::Send(bytes, Duration::from_millis(random.random_range(0..20)))
}

/// The line of a random run: good in one of two.
fn line(seed: Seed) -> LossyLine {
    let mut random = seed.stream("line");
    if random.random_bool(0.5) {
        return LossyLine::default();
    }
    LossyLine {
        loss: random.random_range(0.0..0.3),
        duplication: random.random_range(0.0..0.2),
        reordering: random.random_range(0.0..0.3),
    }
}

/// The answers to Initial packets in a random run: connections in two of three.
fn greeting(seed: Seed) -> Greeting {
    let mut random = seed.stream("greeting");
    if random.random_bool(0.67) {
        return Greeting::default();
    }
    Greeting {
        retry: random.random_range(0.0..=1.0),
        other_version: random.random_range(0.0..0.4),
    }
}

/// The treatment of tickets in a random run. Its clients have none of earlier runs.
fn tickets(seed: Seed) -> Tickets {
    let mut random = seed.stream("tickets");
    [Tickets::None, Tickets::Accepted, Tickets::Rejected][random.random_range(0..3)]
}

#[test]
fn every_request_has_one_outcome_whatever_an_http3_server_does() {
    let start = |current: Arc<CurrentRun>| {
        let of_line = Arc::clone(&current);
        let of_tickets = Arc::clone(&current);
        let of_greeting = Arc::clone(&current);
        let mut script = ServerScript::new(move |arrival| {
            current.arrive();
            act(current.seed(), arrival)
        });
        script.streams = 7;
        script.tickets = Box::new(move || tickets(of_tickets.seed()));
        script.greeting = Box::new(move || greeting(of_greeting.seed()));
        script.line = Box::new(move || line(of_line.seed()));
        let server = script.start();
        let address = server.address;
        // It serves all runs of its worker.
        std::mem::forget(server);
        address
    };
    let vary = |plan: &mut Plan, seed: Seed| {
        let mut random = seed.stream("streams");
        plan.connect_timeout = Span::from_millis(random.random_range(200..3_000));
        plan.tls.insecure = true;
        for request in &mut plan.requests {
            request.url = request.url.replace("http://", "https://");
        }
        let is_safe = plan.requests.iter().all(|request| request.method == "GET");
        plan.protocol = Protocol::Http3 {
            multiplexing: Multiplexing {
                connections: plan.threads * random.random_range(1..4),
                streams: random.random_bool(0.3).then(|| random.random_range(1..10)),
                when_full: [WhenFull::Wait, WhenFull::Open, WhenFull::Drop]
                    [random.random_range(0..3)],
                rejected: [WhenRejected::Count, WhenRejected::Resend][random.random_range(0..2)],
            },
            quic: QuicOptions {
                segmentation_offload: random.random_bool(0.5),
                early_data: is_safe && random.random_bool(0.5),
            },
        };
    };
    each_request_has_one_outcome("HTTP/3", start, vary);
}

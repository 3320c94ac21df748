//! Random servers of HTTP/2, for the property of `random`: each request has one outcome.

use std::sync::Arc;
use std::time::Duration;

use posthaste_load::{Multiplexing, Plan, Protocol, WhenFull, WhenRejected};
use posthaste_units::{Seed, Span};
use rand::RngExt as _;

use super::server::{
    DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, SETTINGS,
    STATUS_200, STATUS_500, ServerAct, StreamServer, frame, goaway, reply, reset, setting,
};
use crate::random::{CurrentRun, each_request_has_one_outcome};

/// Chooses the act of a random server for a request.
fn act(seed: Seed, connection: usize, number: usize, stream: u32) -> ServerAct {
    let mut random = seed
        .numbered("act", (connection * 1_000 + number) as u64)
        .stream("choice");
    let delay = Duration::from_millis(random.random_range(0..20));
    let bytes = match random.random_range(0..26) {
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
        13 => {
            let limit = setting(MAX_CONCURRENT_STREAMS, random.random_range(0..20));
            [frame(SETTINGS, 0, 0, &limit), reply(stream, b"limited")].concat()
        }
        14 => {
            let window = setting(INITIAL_WINDOW_SIZE, random.random_range(0..70_000));
            [reply(stream, b"shrunk"), frame(SETTINGS, 0, 0, &window)].concat()
        }
        12 => [reply(stream, b"twice"), reply(stream, b"twice")].concat(),
        _ => reply(stream, &vec![b'z'; random.random_range(0..20_000)]),
    };
    ServerAct::Send(bytes, delay)
}

/// SETTINGS of a random server.
fn settings(seed: Seed) -> Vec<u8> {
    let mut random = seed.stream("settings");
    let mut settings = Vec::new();
    if random.random_bool(0.5) {
        settings.extend(setting(MAX_CONCURRENT_STREAMS, random.random_range(0..20)));
    }
    if random.random_bool(0.3) {
        settings.extend(setting(INITIAL_WINDOW_SIZE, random.random_range(0..2_000)));
    }
    settings
}

#[test]
fn every_request_has_one_outcome_whatever_an_http2_server_does() {
    let start = |current: Arc<CurrentRun>| {
        let of_settings = Arc::clone(&current);
        let server = StreamServer::scripted(
            move || settings(of_settings.seed()),
            move |arrival| {
                current.arrive();
                act(
                    current.seed(),
                    arrival.connection,
                    arrival.number,
                    arrival.stream,
                )
            },
        );
        server.address
    };
    let vary = |plan: &mut Plan, seed: Seed| {
        let mut random = seed.stream("streams");
        plan.connect_timeout = Span::from_secs(10);
        plan.protocol = Protocol::Http2(Multiplexing {
            connections: plan.threads * random.random_range(1..4),
            streams: random.random_bool(0.3).then(|| random.random_range(1..10)),
            when_full: [WhenFull::Wait, WhenFull::Open, WhenFull::Drop][random.random_range(0..3)],
            rejected: [WhenRejected::Count, WhenRejected::Resend][random.random_range(0..2)],
        });
    };
    each_request_has_one_outcome("HTTP/2", start, vary);
}

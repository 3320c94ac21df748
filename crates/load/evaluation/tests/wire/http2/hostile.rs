//! Servers that break the rules of HTTP/2: each request has its outcome.

use std::io::Write as _;
use std::time::Duration;

use posthaste_load::{Multiplexing, Outcome, Protocol, Run};
use posthaste_units::Span;

use super::plan;
use super::server::{
    DATA, END_HEADERS, END_STREAM, HEADERS, MAX_CONCURRENT_STREAMS, PING, SETTINGS, STATUS_200,
    ServerAct, StreamServer, WINDOW_UPDATE, frame, goaway, reply, reset, setting,
};
use crate::server::{carried_out, serve};

/// Runs 30 requests against a server that answers each 10th request with `bytes`, and the others after 100 ms.
fn run_against(bytes: impl Fn(u32) -> Vec<u8> + Send + Sync + Clone + 'static) -> Run {
    let server = StreamServer::start(Vec::new(), move |arrival| match arrival.number {
        9 => ServerAct::Send(bytes(arrival.stream), Duration::ZERO),
        _ => ServerAct::Send(reply(arrival.stream, b"hello"), Duration::from_millis(100)),
    });
    let mut plan = plan(&server, 1_000.0, 30, Multiplexing::default());
    plan.timeout = Span::from_secs(20);
    carried_out(&plan)
}

fn counts(run: &Run) -> Vec<(Outcome, u64)> {
    run.outcomes
        .iter()
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[test]
fn a_violation_of_one_stream_ends_that_stream() {
    let upper_case = [STATUS_200, &[0x00, 1, b'A', 1, b'b']].concat();
    let connection = [STATUS_200, &[0x00, 10], b"connection", &[1, b'b']].concat();
    let length = [STATUS_200, &[0x0f, 0x0d, 1, b'9']].concat();
    let te = [STATUS_200, &[0x00, 2], b"te", &[4], b"gzip"].concat();
    let cases: [(&str, Vec<u8>); 5] = [
        ("te in a reply", te),
        ("an upper-case name", upper_case),
        ("a field of the connection", connection),
        ("no status", vec![0x00, 1, b'a', 1, b'b']),
        ("a wrong content-length", length),
    ];
    for (name, block) in cases {
        let run = run_against(move |stream| {
            let mut bytes = frame(HEADERS, END_HEADERS, stream, &block);
            bytes.extend(frame(DATA, END_STREAM, stream, b"hello"));
            bytes
        });
        assert!(
            run.outcomes[Outcome::ProtocolError] >= 1,
            "{name}: {:?}",
            counts(&run)
        );
        let ok = run.outcomes[Outcome::Ok];
        assert_eq!(
            ok + run.outcomes[Outcome::ProtocolError],
            30,
            "{name}: {:?}",
            counts(&run)
        );
    }
}

/// Malformed by RFC 9113, section 8.2.1, but common.
#[test]
fn blanks_at_the_ends_of_values_are_no_violation() {
    let run = run_against(|stream| {
        let head = [STATUS_200, &[0x00, 6], b"server", &[3], b" x\t"].concat();
        let trailers = [&[0x00, 3][..], b"sum", &[2], b"1 "].concat();
        let mut bytes = frame(HEADERS, END_HEADERS, stream, &head);
        bytes.extend(frame(DATA, 0, stream, b"hello"));
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &trailers));
        bytes
    });
    assert_eq!(run.outcomes[Outcome::Ok], 30, "{:?}", counts(&run));
}

/// A name, and the bytes of a server for a stream.
type Violation = (&'static str, fn(u32) -> Vec<u8>);

#[test]
fn a_violation_of_the_connection_ends_the_others_as_collateral() {
    let cases: [Violation; 4] = [
        ("a broken field block", |stream| {
            frame(
                HEADERS,
                END_HEADERS,
                stream,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            )
        }),
        ("a window beyond its limit", |_| {
            frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes())
        }),
        ("SETTINGS of a wrong length", |_| {
            frame(SETTINGS, 0, 0, &[1, 2, 3])
        }),
        ("PING on a stream", |stream| frame(PING, 0, stream, &[0; 8])),
    ];
    for (name, bytes) in cases {
        let run = run_against(bytes);
        let [errors, others, ok] =
            [Outcome::ProtocolError, Outcome::Collateral, Outcome::Ok].map(|one| run.outcomes[one]);
        assert!(errors >= 1, "{name}: {:?}", counts(&run));
        assert_eq!(errors + others + ok, 30, "{name}: {:?}", counts(&run));
        assert!(run.streams.connections_lost >= 1, "{name}");
    }
}

#[test]
fn a_reply_that_is_cut_off_is_reset() {
    let server = StreamServer::start(Vec::new(), |arrival| {
        ServerAct::Close(frame(HEADERS, END_HEADERS, arrival.stream, STATUS_200))
    });
    let run = carried_out(&plan(&server, 100.0, 200, Multiplexing::default()));
    assert_eq!(run.outcomes[Outcome::Reset], 20, "{:?}", counts(&run));
}

#[test]
fn resets_are_counted_by_code() {
    let server = StreamServer::start(Vec::new(), |arrival| {
        ServerAct::Send(reset(arrival.stream, 11), Duration::ZERO)
    });
    let run = carried_out(&plan(&server, 100.0, 200, Multiplexing::default()));
    assert_eq!(run.outcomes[Outcome::Reset], 20, "{:?}", counts(&run));
    let codes: Vec<_> = run.streams.resets_received.iter().collect();
    assert_eq!(codes, [("ENHANCE_YOUR_CALM", 20)]);
}

#[test]
fn a_server_that_leaves_at_once_gets_no_flood_of_connections() {
    let cases = [
        (goaway(0, 0), Outcome::Rejected),
        (Vec::new(), Outcome::Reset),
    ];
    for (bytes, expected) in cases {
        // No stream may be open, and the connection ends at once.
        let limit = setting(MAX_CONCURRENT_STREAMS, 0);
        let address = serve(move |mut socket| {
            let _ = socket.write_all(&[frame(SETTINGS, 0, 0, &limit), bytes.clone()].concat());
        });
        let mut plan = crate::server::plan(address, 100.0, 200);
        plan.protocol = Protocol::Http2(Multiplexing::default());
        plan.timeout = Span::from_secs(20);
        let run = carried_out(&plan);
        assert!(run.connections <= 40, "{} connections", run.connections);
        let lost = [Outcome::Rejected, Outcome::Reset].map(|one| run.outcomes[one]);
        assert_eq!(lost.iter().sum::<u64>(), 20, "{:?}", counts(&run));
        assert!(run.outcomes[expected] > 0, "{:?}", counts(&run));
    }
}

#[test]
fn a_server_that_always_goes_away_rejects_all() {
    let server = StreamServer::start(Vec::new(), |_| {
        ServerAct::Send(goaway(0, 0), Duration::ZERO)
    });
    let run = carried_out(&plan(&server, 100.0, 200, Multiplexing::default()));
    assert_eq!(run.outcomes[Outcome::Rejected], 20, "{:?}", counts(&run));
}

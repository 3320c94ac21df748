//! Servers that break the rules of QUIC, HTTP/3 and QPACK: each has its outcome.

use std::net::UdpSocket;
use std::time::Duration;

use posthaste_load::{Multiplexing, Outcome};
use posthaste_units::Span;

use super::packets::version_negotiation;
use super::server::{
    CONTROL, DATA, GOAWAY, HEADERS, ReplyAct, SETTINGS, STATUS_200, STATUS_500, ServerScript,
    frame, reply,
};
use super::{all_are, plan, reason};
use crate::server::carried_out;

/// Runs five requests on one connection each time, against a server that acts so for each.
fn outcome_of(act: ReplyAct) -> (Outcome, String) {
    outcome_of_script(ServerScript::new(move |_| act.clone()))
}

fn outcome_of_script(script: ServerScript) -> (Outcome, String) {
    let server = script.start();
    let mut plan = plan(server.address, 100.0, 50, Multiplexing::default());
    plan.connections = posthaste_load::Connections::New;
    plan.timeout = Span::from_secs(5);
    let run = carried_out(&plan);
    let found = run.outcomes.iter().max_by_key(|(_, count)| *count);
    let (outcome, count) = found.expect("outcomes exist");
    assert_eq!(count, run.intended, "{:?} {}", run.outcomes, reason(&run));
    (outcome, reason(&run))
}

fn sends(parts: &[Vec<u8>]) -> ReplyAct {
    ReplyAct::Send(parts.concat(), Duration::ZERO)
}

/// Checks the outcome of each act.
fn each_has_its_outcome(cases: impl IntoIterator<Item = (&'static str, ReplyAct, Outcome)>) {
    for (name, act, expected) in cases {
        let (outcome, reason) = outcome_of(act);
        assert_eq!(outcome, expected, "{name}: {reason}");
    }
}

fn head() -> Vec<u8> {
    frame(HEADERS, STATUS_200)
}

fn head_and(field: &[u8]) -> Vec<u8> {
    frame(HEADERS, &[STATUS_200, field].concat())
}

#[test]
fn frames_of_a_reply_have_their_outcomes() {
    use Outcome::{Ok, ProtocolError, StatusError};
    each_has_its_outcome([
        ("whole reply", sends(&[reply(b"x")]), Ok),
        (
            "unknown frame",
            sends(&[frame(0x21, b"grease"), reply(b"x")]),
            Ok,
        ),
        (
            "a value between blanks, and a trailer before one",
            sends(&[
                head_and(b"\x21a\x03 x\t"),
                frame(DATA, b"x"),
                frame(HEADERS, b"\0\0\x21b\x02x "),
            ]),
            Ok,
        ),
        (
            "status 500",
            sends(&[frame(HEADERS, STATUS_500)]),
            StatusError,
        ),
        ("nothing", sends(&[]), ProtocolError),
        ("DATA first", sends(&[frame(DATA, b"x")]), ProtocolError),
        (
            "SETTINGS on a request",
            sends(&[frame(SETTINGS, b"")]),
            ProtocolError,
        ),
        (
            "GOAWAY on a request",
            sends(&[frame(GOAWAY, &[0])]),
            ProtocolError,
        ),
        (
            "PUSH_PROMISE",
            sends(&[frame(5, &[0, 0, 0])]),
            ProtocolError,
        ),
        (
            "frame of HTTP/2",
            sends(&[frame(6, &[0; 8])]),
            ProtocolError,
        ),
        (
            "third HEADERS",
            sends(&[reply(b"x"), head_and(&[]), head_and(&[])]),
            ProtocolError,
        ),
        (
            "pseudo-field in trailers",
            sends(&[reply(b"x"), head()]),
            ProtocolError,
        ),
    ]);
}

#[test]
fn broken_fields_and_bodies_have_their_outcomes() {
    use Outcome::ProtocolError;
    each_has_its_outcome([
        (
            "cut frame",
            sends(&[vec![HEADERS, 40, 0, 0]]),
            ProtocolError,
        ),
        (
            "cut body",
            sends(&[head(), vec![DATA, 40, b'x']]),
            ProtocolError,
        ),
        (
            "dynamic reference",
            sends(&[frame(HEADERS, &[2, 0, 0x80])]),
            ProtocolError,
        ),
        (
            "index beyond the table",
            sends(&[frame(HEADERS, &[0, 0, 0xff, 0x7f])]),
            ProtocolError,
        ),
        (
            "endless integer",
            sends(&[frame(
                HEADERS,
                &[
                    0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
                ],
            )]),
            ProtocolError,
        ),
        (
            "no status",
            sends(&[frame(HEADERS, &[0, 0])]),
            ProtocolError,
        ),
        (
            "content-length 9 for 1 byte",
            sends(&[head_and(&[0x54, 1, b'9']), frame(DATA, b"x")]),
            ProtocolError,
        ),
    ]);
}

#[test]
fn resets_and_other_streams_have_their_outcomes() {
    use Outcome::{Ok, ProtocolError, Rejected, Reset};
    each_has_its_outcome([
        ("rejection", ReplyAct::Reset(vec![], 0x10b), Rejected),
        (
            "reset after the head",
            ReplyAct::Reset(head(), 0x10b),
            Reset,
        ),
        (
            "reset with H3_INTERNAL_ERROR",
            ReplyAct::Reset(vec![], 0x102),
            Reset,
        ),
        (
            "stop with H3_NO_ERROR and a whole reply",
            ReplyAct::Stop(0x100),
            Ok,
        ),
        ("connection closed", ReplyAct::Close(0x100), Reset),
        (
            "SETTINGS twice",
            ReplyAct::Control(frame(SETTINGS, b"")),
            ProtocolError,
        ),
        (
            "DATA on the control stream",
            ReplyAct::Control(frame(DATA, b"x")),
            ProtocolError,
        ),
        (
            "GOAWAY of a unidirectional stream",
            ReplyAct::Control(frame(GOAWAY, &[2])),
            ProtocolError,
        ),
        (
            "MAX_PUSH_ID of a server",
            ReplyAct::Control(frame(0x0d, &[1])),
            ProtocolError,
        ),
        (
            "second control stream",
            ReplyAct::Stream(CONTROL.to_vec()),
            ProtocolError,
        ),
        ("push stream", ReplyAct::Stream(vec![1, 0]), ProtocolError),
        ("unknown stream", ReplyAct::Stream(vec![0x21, 1, 2, 3]), Ok),
        (
            "insertion into the dynamic table",
            ReplyAct::Stream(vec![2, 0x41, b'a', 1, b'b']),
            ProtocolError,
        ),
        (
            "acknowledgement of a section",
            ReplyAct::Stream(vec![3, 0x80]),
            ProtocolError,
        ),
    ]);
}

#[test]
fn a_server_without_settings_first_violates_the_protocol() {
    for control in [
        vec![0, DATA, 0],
        vec![0, SETTINGS, 2, 0x02, 0],
        vec![0, SETTINGS, 4, 1, 0, 1, 0],
    ] {
        let mut script = ServerScript::new(|_| ReplyAct::Ignore);
        script.control = Some(control);
        let (outcome, reason) = outcome_of_script(script);
        assert_eq!(outcome, Outcome::ProtocolError, "{reason}");
    }
}

#[test]
fn a_reply_without_an_end_times_out() {
    let endless = || ServerScript::new(|_| ReplyAct::Begin(reply(b"and so on")));
    let server = endless().start();
    let mut plan = plan(server.address, 100.0, 50, Multiplexing::default());
    plan.timeout = Span::from_millis(300);
    let run = carried_out(&plan);
    all_are(&run, Outcome::TimedOut);
    // The server is told with H3_REQUEST_CANCELLED.
    assert_eq!(run.streams.resets_sent.total(), run.intended);
}

/// Answers each datagram with the bytes that `answer` returns. Returns the address.
fn answering(answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> std::net::SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((length, source)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&answer(&buffer[..length]), source);
        }
    });
    address
}

#[test]
fn a_server_of_another_version_is_named() {
    let address = answering(version_negotiation);
    let run = carried_out(&plan(address, 100.0, 50, Multiplexing::default()));
    all_are(&run, Outcome::ProtocolError);
    assert!(reason(&run).contains("version"), "{}", reason(&run));
}

#[test]
fn garbage_does_not_establish_a_connection() {
    for garbage in [
        vec![0; 1_200],
        vec![0xff; 1_200],
        vec![0x40; 30],
        vec![0xc0, 0, 0, 0, 1],
    ] {
        let address = answering(move |_| garbage.clone());
        let mut plan = plan(address, 100.0, 50, Multiplexing::default());
        plan.connect_timeout = Span::from_millis(300);
        all_are(&carried_out(&plan), Outcome::ConnectAborted);
    }
}

#[test]
fn a_server_that_echoes_establishes_no_connection() {
    // A client ignores an Initial of its own.
    let address = answering(<[u8]>::to_vec);
    let mut plan = plan(address, 100.0, 50, Multiplexing::default());
    plan.connect_timeout = Span::from_millis(300);
    all_are(&carried_out(&plan), Outcome::ConnectAborted);
}

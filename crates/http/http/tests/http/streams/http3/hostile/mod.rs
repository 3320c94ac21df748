//! Servers that violate the protocol or exhaust resources: each case has its outcome, in any pieces.

mod connection;
mod reply;

use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::{StreamEnd, StreamErrorCode as AnyCode};

use super::support::{CONTROL, ScriptedExchange, ServerAct, data, frame, goaway, ok, settings};

/// Streams that each case opens: 0 with token 10, then 4 with token 30.
const GUILTY: u32 = 10;
const OTHER: u32 = 30;

/// Streams of the server.
const ENCODER: u64 = 7;
const DECODER: u64 = 11;
const FURTHER: u64 = 15;

/// Expected result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseOutcome {
    /// The connection ends with this code. The token of the guilty stream, if one is.
    Connection(ErrorCode, Option<u32>),
    /// Stream 0 ends as malformed with this code, and stream 4 continues.
    Stream(ErrorCode),
    /// Stream 0 has this end, and stream 4 continues.
    End(StreamEnd),
    /// Both streams continue.
    Open,
}

struct HostileCase {
    name: &'static str,
    acts: Vec<ServerAct>,
    outcome: CaseOutcome,
}

fn case(name: &'static str, outcome: CaseOutcome, acts: &[ServerAct]) -> HostileCase {
    HostileCase {
        name,
        acts: acts.to_vec(),
        outcome,
    }
}

/// The connection ends with this code, and no stream is guilty.
const fn connection(code: ErrorCode) -> CaseOutcome {
    CaseOutcome::Connection(code, None)
}

/// The connection ends with this code because of stream 0.
const fn guilty(code: ErrorCode) -> CaseOutcome {
    CaseOutcome::Connection(code, Some(GUILTY))
}

const UNEXPECTED: ErrorCode = ErrorCode::H3_FRAME_UNEXPECTED;
const MALFORMED: CaseOutcome = CaseOutcome::Stream(ErrorCode::H3_MESSAGE_ERROR);
const EXCESSIVE: CaseOutcome = CaseOutcome::Stream(ErrorCode::H3_EXCESSIVE_LOAD);
const COMPLETE: CaseOutcome = CaseOutcome::End(StreamEnd::Complete);
const DECOMPRESSION: CaseOutcome = guilty(ErrorCode::QPACK_DECOMPRESSION_FAILED);
const FIN: ServerAct = ServerAct::Fin(0);

/// Bytes on stream 0.
fn reply(parts: &[Vec<u8>]) -> ServerAct {
    ServerAct::Bytes(0, parts.concat())
}

/// Bytes on the control stream, after SETTINGS.
fn control(parts: &[Vec<u8>]) -> ServerAct {
    ServerAct::Bytes(CONTROL, parts.concat())
}

fn on(stream: u64, bytes: &[u8]) -> ServerAct {
    ServerAct::Bytes(stream, bytes.to_vec())
}

fn fields(section: &[u8]) -> ServerAct {
    reply(&[frame(kind::HEADERS, section)])
}

/// Runs a case in pieces of `length` bytes.
fn run(case: &HostileCase, length: usize) -> (CaseOutcome, ScriptedExchange) {
    let mut exchange = ScriptedExchange::new();
    assert_eq!(exchange.open(GUILTY), 0);
    assert_eq!(exchange.open(OTHER), 4);
    exchange.flush();
    for act in &case.acts {
        if let Err(error) = exchange.perform(act, length) {
            assert_eq!(exchange.client.output(), None, "{}", case.name);
            assert_eq!(exchange.perform(act, length), Err(error), "{}", case.name);
            return (CaseOutcome::Connection(error.code, error.token), exchange);
        }
    }
    exchange.flush();
    let outcome = match exchange.events.end_of(GUILTY) {
        Some(StreamEnd::Malformed {
            code: AnyCode::Http3(code),
            ..
        }) => CaseOutcome::Stream(code),
        Some(end) => CaseOutcome::End(end),
        None => CaseOutcome::Open,
    };
    assert_eq!(exchange.events.end_of(OTHER), None, "{}", case.name);
    exchange.receive_last(4, &ok()).unwrap();
    let end = exchange.events.end_of(OTHER);
    assert_eq!(end, Some(StreamEnd::Complete), "{}", case.name);
    (outcome, exchange)
}

#[test]
fn each_violation_has_its_outcome_in_any_pieces() {
    let cases = [
        reply::field_sections(),
        reply::large_sections(),
        reply::messages(),
        reply::contents(),
        reply::request_frames(),
        reply::cut_frames(),
        connection::streams(),
        connection::ends_of_streams(),
        connection::instructions(),
        connection::control_frames(),
        connection::goaways(),
        connection::resets(),
    ];
    let cases: Vec<HostileCase> = cases.into_iter().flatten().collect();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    for case in &cases {
        let (outcome, whole) = run(case, usize::MAX);
        assert_eq!(outcome, case.outcome, "{}", case.name);
        if let CaseOutcome::Stream(code) = outcome {
            // The request was sent to its end, so that only the reply is stopped, unless it has ended.
            let has_end = case
                .acts
                .iter()
                .position(|act| matches!(act, ServerAct::Fin(0)));
            let expected = match has_end {
                Some(at) if at + 1 == case.acts.len() => None,
                _ => Some(code),
            };
            assert_eq!(whole.ends_of(0), (None, expected), "{}", case.name);
        }
        for length in [1, 7, 1000] {
            let (pieces, exchange) = run(case, length);
            assert_eq!(pieces, outcome, "{} in pieces of {length}", case.name);
            assert_eq!(exchange.events.0, whole.events.0, "{}", case.name);
            assert_eq!(exchange.sent, whole.sent, "{}", case.name);
        }
    }
}

#[test]
fn the_control_stream_begins_with_settings() {
    for first in [
        frame(0x21, b""),
        goaway(0),
        data(b""),
        frame(kind::MAX_PUSH_ID, b"\x00"),
    ] {
        let mut exchange = ScriptedExchange::before_settings();
        let bytes = [vec![0], first].concat();
        let error = exchange.receive(CONTROL, &bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the first frame of the control stream is not SETTINGS (H3_MISSING_SETTINGS)"
        );
    }
    let mut exchange = ScriptedExchange::before_settings();
    exchange.receive(CONTROL, b"\x00").unwrap();
    let error = exchange.receive_last(CONTROL, b"").unwrap_err();
    assert_eq!(error.code, ErrorCode::H3_CLOSED_CRITICAL_STREAM);
}

#[test]
fn invalid_settings_end_the_connection() {
    let invalid = ErrorCode::H3_SETTINGS_ERROR;
    for (bytes, code) in [
        (settings(&[(0, 1)]), invalid),
        (settings(&[(2, 0)]), invalid),
        (settings(&[(3, 100)]), invalid),
        (settings(&[(4, 1)]), invalid),
        (settings(&[(5, 1)]), invalid),
        (settings(&[(6, 1), (6, 1)]), invalid),
        (
            [vec![0], frame(4, b"\x06")].concat(),
            ErrorCode::H3_FRAME_ERROR,
        ),
        (
            [vec![0], frame(4, &[0x21; 5_000])].concat(),
            ErrorCode::H3_EXCESSIVE_LOAD,
        ),
    ] {
        let mut exchange = ScriptedExchange::before_settings();
        let error = exchange.receive(CONTROL, &bytes).unwrap_err();
        assert_eq!(error.code, code, "{bytes:02x?}");
    }
    let mut exchange = ScriptedExchange::before_settings();
    let valid = settings(&[
        (1, 4096),
        (7, 16),
        (6, 1 << 20),
        (0x21, 5),
        (0x33, 1),
        (8, 1),
    ]);
    exchange.receive(CONTROL, &valid).unwrap();
    assert_eq!(exchange.events.of_connection(), ["SettingsChanged"]);
}

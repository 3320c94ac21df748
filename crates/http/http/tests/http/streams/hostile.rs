//! Servers that violate the protocol or exhaust resources: each case has its outcome, in any pieces.

use posthaste_http::streams::http2::ErrorCode;
use posthaste_http::streams::http2::frame::{flag, kind};
use posthaste_http::streams::{StreamEnd, StreamErrorCode as AnyCode};

use crate::streams::support::{
    Exchange, data, frame, goaway, headers, ok, ok_empty, reset, settings, window_update,
};

/// Streams that each case opens: 1 with token 10, then 3 with token 30.
const GUILTY: u32 = 10;
const OTHER: u32 = 30;

/// Expected result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseOutcome {
    /// The connection ends with this code. The token of the guilty stream, if one is.
    Connection(ErrorCode, Option<u32>),
    /// Stream 1 ends with RST_STREAM of this code, and stream 3 continues.
    Stream(ErrorCode),
    /// Stream 1 is complete, and stream 3 continues.
    Complete,
    /// Both streams continue.
    Open,
}

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    verdict: CaseOutcome,
}

const END: u8 = flag::END_STREAM;
const HEADERS_END: u8 = flag::END_HEADERS;
const PROTOCOL: CaseOutcome = CaseOutcome::Connection(ErrorCode::PROTOCOL_ERROR, None);
const SIZE: CaseOutcome = CaseOutcome::Connection(ErrorCode::FRAME_SIZE_ERROR, None);
const FLOW: CaseOutcome = CaseOutcome::Connection(ErrorCode::FLOW_CONTROL_ERROR, None);
const CALM: CaseOutcome = CaseOutcome::Connection(ErrorCode::ENHANCE_YOUR_CALM, None);

/// The verdict with stream 1 as the guilty one.
fn guilty(verdict: CaseOutcome) -> CaseOutcome {
    match verdict {
        CaseOutcome::Connection(code, _) => CaseOutcome::Connection(code, Some(GUILTY)),
        other => other,
    }
}

fn case(name: &'static str, verdict: CaseOutcome, parts: &[Vec<u8>]) -> Case {
    Case {
        name,
        bytes: parts.concat(),
        verdict,
    }
}

const COMPRESSION: CaseOutcome =
    CaseOutcome::Connection(ErrorCode::COMPRESSION_ERROR, Some(GUILTY));

fn block_of(block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, HEADERS_END, 1, block)
}

fn begun() -> Vec<u8> {
    frame(kind::HEADERS, 0, 1, b"\x88")
}

fn continuation(flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::CONTINUATION, flags, 1, block)
}

/// Blocks that cannot be decoded, or decode to too much.
fn compressed_fields() -> Vec<Case> {
    // One entry of 4 kB, named 16,000 times: 64 MB of fields.
    let mut bomb = b"\x88\x40\x01a\x7f\xd9\x1e".to_vec();
    bomb.extend_from_slice(&[b'x'; 4_056]);
    bomb.extend_from_slice(&[0xbe; 12_000]);
    let many = [b"\x88\x40\x01a\x01b", &[0xbe; 16_000][..]].concat();
    vec![
        case(
            "HPACK bomb",
            CaseOutcome::Stream(ErrorCode::ENHANCE_YOUR_CALM),
            &[block_of(&bomb)],
        ),
        case("index 0", COMPRESSION, &[block_of(b"\x80")]),
        case(
            "index beyond the table",
            COMPRESSION,
            &[block_of(b"\x88\xbe")],
        ),
        case(
            "integer beyond 32 bits",
            COMPRESSION,
            &[block_of(b"\xff\xff\xff\xff\xff\xff\x01")],
        ),
        case("cut string", COMPRESSION, &[block_of(b"\x00\x0aabc")]),
        case(
            "Huffman padding of zeros",
            COMPRESSION,
            &[block_of(b"\x88\x00\x81\x00\x00")],
        ),
        case(
            "Huffman end of string",
            COMPRESSION,
            &[block_of(b"\x88\x00\x84\xff\xff\xff\xff\x00")],
        ),
        case(
            "table above the limit",
            COMPRESSION,
            &[block_of(b"\x3f\xe2\x1f\x88")],
        ),
        case(
            "table update after a field",
            COMPRESSION,
            &[block_of(b"\x88\x20")],
        ),
        case(
            "many fields",
            CaseOutcome::Stream(ErrorCode::ENHANCE_YOUR_CALM),
            &[block_of(&many)],
        ),
    ]
}

/// Blocks that are interrupted or do not end.
fn field_blocks() -> Vec<Case> {
    vec![
        case(
            "endless empty CONTINUATION",
            guilty(CALM),
            &[begun(), continuation(0, b"").repeat(200)],
        ),
        case(
            "endless full CONTINUATION",
            guilty(CALM),
            &[begun(), continuation(0, &[0x82; 16_384]).repeat(20)],
        ),
        case(
            "CONTINUATION alone",
            guilty(PROTOCOL),
            &[continuation(HEADERS_END, b"\x88")],
        ),
        case(
            "PING inside a block",
            PROTOCOL,
            &[begun(), frame(kind::PING, 0, 0, &[0; 8])],
        ),
        case(
            "DATA inside a block",
            guilty(PROTOCOL),
            &[begun(), data(1, 0, b"a")],
        ),
        case(
            "unknown frame inside a block",
            guilty(PROTOCOL),
            &[begun(), frame(99, 0, 1, b"")],
        ),
    ]
}

/// Further invalid HEADERS, and interim replies.
fn heads() -> Vec<Case> {
    vec![
        case(
            "CONTINUATION of another stream",
            CaseOutcome::Connection(ErrorCode::PROTOCOL_ERROR, Some(OTHER)),
            &[begun(), frame(kind::CONTINUATION, HEADERS_END, 3, b"")],
        ),
        case(
            "more padding than HEADERS",
            guilty(PROTOCOL),
            &[frame(kind::HEADERS, 0x0c, 1, b"\x02\x88")],
        ),
        case(
            "HEADERS cut in the priority",
            guilty(SIZE),
            &[frame(kind::HEADERS, 0x24, 1, b"\0\0")],
        ),
        case(
            "endless interim replies",
            CaseOutcome::Stream(ErrorCode::ENHANCE_YOUR_CALM),
            &[headers(1, 0, &[(":status", "100")]).repeat(101)],
        ),
        case(
            "100 interim replies",
            CaseOutcome::Complete,
            &[
                headers(1, 0, &[(":status", "100")]).repeat(100),
                ok_empty(1),
            ],
        ),
        case(
            "upper case",
            CaseOutcome::Stream(ErrorCode::PROTOCOL_ERROR),
            &[headers(1, 0, &[(":status", "200"), ("A", "b")])],
        ),
    ]
}

/// Frames on streams that were not opened or have ended.
fn streams() -> Vec<Case> {
    let closed = CaseOutcome::Connection(ErrorCode::STREAM_CLOSED, None);
    vec![
        case(
            "HEADERS on stream 0",
            PROTOCOL,
            &[headers(0, 0, &[(":status", "200")])],
        ),
        case("DATA on stream 0", PROTOCOL, &[data(0, 0, b"a")]),
        case("HEADERS on a future stream", PROTOCOL, &[ok(5)]),
        case("DATA on a future stream", PROTOCOL, &[data(5, 0, b"a")]),
        case("RST_STREAM on a future stream", PROTOCOL, &[reset(5, 8)]),
        case("RST_STREAM on stream 0", PROTOCOL, &[reset(0, 8)]),
        case(
            "WINDOW_UPDATE on a future stream",
            PROTOCOL,
            &[window_update(5, 1)],
        ),
        case("a stream of the server", PROTOCOL, &[ok(2)]),
        case(
            "PUSH_PROMISE",
            guilty(PROTOCOL),
            &[frame(kind::PUSH_PROMISE, 4, 1, b"\0\0\0\x02\x82")],
        ),
        case(
            "DATA after the end",
            closed,
            &[ok_empty(1), data(1, 0, b"a")],
        ),
    ]
}

/// Frames that are invalid on their stream.
fn stream_frames() -> Vec<Case> {
    let closed = CaseOutcome::Connection(ErrorCode::STREAM_CLOSED, None);
    vec![
        case("HEADERS after the end", closed, &[ok_empty(1), ok(1)]),
        case(
            "RST_STREAM after the end",
            CaseOutcome::Complete,
            &[ok_empty(1), reset(1, 8)],
        ),
        case(
            "WINDOW_UPDATE after the end",
            CaseOutcome::Complete,
            &[ok_empty(1), window_update(1, 9)],
        ),
        case(
            "empty WINDOW_UPDATE after the end",
            CaseOutcome::Complete,
            &[ok_empty(1), window_update(1, 0)],
        ),
        case(
            "frames after a malformed reply",
            CaseOutcome::Stream(ErrorCode::PROTOCOL_ERROR),
            &[
                data(1, 0, b"too early"),
                ok(1),
                data(1, END, b"late"),
                reset(1, 8),
            ],
        ),
        case(
            "padded DATA without a payload",
            guilty(SIZE),
            &[ok(1), frame(kind::DATA, 8, 1, b"")],
        ),
        case(
            "more padding than DATA",
            guilty(PROTOCOL),
            &[ok(1), frame(kind::DATA, 8, 1, b"\x02a")],
        ),
        case(
            "endless empty DATA",
            CaseOutcome::Open,
            &[ok(1), data(1, 0, b"").repeat(10_000)],
        ),
        case(
            "PRIORITY of 4 bytes",
            CaseOutcome::Stream(ErrorCode::FRAME_SIZE_ERROR),
            &[frame(kind::PRIORITY, 0, 1, &[0; 4])],
        ),
        case(
            "PRIORITY of 4 bytes on a closed stream",
            CaseOutcome::Complete,
            &[ok_empty(1), frame(kind::PRIORITY, 0, 1, &[0; 4])],
        ),
    ]
}

/// Invalid and endless SETTINGS and PING.
fn settings_and_pings() -> Vec<Case> {
    vec![
        case("a long frame", SIZE, &[frame(99, 0, 0, &[0; 16_385])]),
        case(
            "SETTINGS on a stream",
            guilty(PROTOCOL),
            &[frame(kind::SETTINGS, 0, 1, b"")],
        ),
        case(
            "SETTINGS of 5 bytes",
            SIZE,
            &[frame(kind::SETTINGS, 0, 0, &[0; 5])],
        ),
        case(
            "SETTINGS acknowledged with a payload",
            SIZE,
            &[frame(kind::SETTINGS, 1, 0, &[0; 6])],
        ),
        case(
            "SETTINGS that enable push",
            PROTOCOL,
            &[settings(&[(2, 1)])],
        ),
        case(
            "SETTINGS with a large window",
            FLOW,
            &[settings(&[(4, 1 << 31)])],
        ),
        case(
            "SETTINGS with small frames",
            PROTOCOL,
            &[settings(&[(5, 100)])],
        ),
        case(
            "SETTINGS that overflow a window",
            FLOW,
            &[
                window_update(1, (1 << 31) - 1 - 65_535),
                settings(&[(4, 65_536)]),
            ],
        ),
        case("endless SETTINGS", CALM, &[settings(&[]).repeat(10_001)]),
        case(
            "endless PING",
            CALM,
            &[frame(kind::PING, 0, 0, &[0; 8]).repeat(10_001)],
        ),
        case(
            "endless PING answers",
            CaseOutcome::Open,
            &[frame(kind::PING, 1, 0, &[0; 8]).repeat(20_000)],
        ),
        case("PING of 7 bytes", SIZE, &[frame(kind::PING, 0, 0, &[0; 7])]),
        case(
            "PING on a stream",
            guilty(PROTOCOL),
            &[frame(kind::PING, 0, 1, &[0; 8])],
        ),
    ]
}

/// Invalid GOAWAY, RST_STREAM and WINDOW_UPDATE.
fn connection() -> Vec<Case> {
    vec![
        case(
            "GOAWAY of 7 bytes",
            SIZE,
            &[frame(kind::GOAWAY, 0, 0, &[0; 7])],
        ),
        case(
            "GOAWAY on a stream",
            guilty(PROTOCOL),
            &[frame(kind::GOAWAY, 0, 1, &[0; 8])],
        ),
        case("GOAWAY that rises", PROTOCOL, &[goaway(3, 0), goaway(5, 0)]),
        case(
            "RST_STREAM of 3 bytes",
            guilty(SIZE),
            &[frame(kind::RST_STREAM, 0, 1, &[0; 3])],
        ),
        case(
            "WINDOW_UPDATE of 5 bytes",
            guilty(SIZE),
            &[frame(kind::WINDOW_UPDATE, 0, 1, &[0; 5])],
        ),
        case("empty WINDOW_UPDATE", PROTOCOL, &[window_update(0, 0)]),
        case(
            "empty WINDOW_UPDATE of a stream",
            CaseOutcome::Stream(ErrorCode::PROTOCOL_ERROR),
            &[window_update(1, 0)],
        ),
        case("window overflow", FLOW, &[window_update(0, (1 << 31) - 1)]),
        case(
            "window overflow of a stream",
            CaseOutcome::Stream(ErrorCode::FLOW_CONTROL_ERROR),
            &[window_update(1, (1 << 31) - 1)],
        ),
        case(
            "PRIORITY on stream 0",
            PROTOCOL,
            &[frame(kind::PRIORITY, 0, 0, &[0; 5])],
        ),
        case(
            "many windows in one SETTINGS",
            CaseOutcome::Open,
            &[settings(&[(4, 1), (4, 1 << 20)].repeat(1_000))],
        ),
        case(
            "endless unknown frames",
            CaseOutcome::Open,
            &[frame(99, 7, 0, &[1; 100]).repeat(1_000)],
        ),
    ]
}

/// Runs a case in pieces of `length` bytes. Returns the verdict and the frames that the client sent.
fn run(case: &Case, length: usize) -> (CaseOutcome, Exchange, Vec<u8>) {
    let mut exchange = Exchange::new();
    exchange.open(GUILTY);
    exchange.open(OTHER);
    exchange.discard_output();
    for piece in case.bytes.chunks(length) {
        if let Err(error) = exchange.receive(piece) {
            let verdict = CaseOutcome::Connection(error.code, error.token);
            let kinds = exchange.kinds();
            return (verdict, exchange, kinds);
        }
    }
    let verdict = match exchange.events.end_of(GUILTY) {
        Some(StreamEnd::Malformed {
            code: AnyCode::Http2(code),
            ..
        }) => CaseOutcome::Stream(code),
        Some(StreamEnd::Complete) => CaseOutcome::Complete,
        Some(end) => panic!("{}: the stream has the end {end:?}", case.name),
        None => CaseOutcome::Open,
    };
    assert_eq!(exchange.events.end_of(OTHER), None, "{}", case.name);
    let kinds = exchange.kinds();
    exchange.receive(&ok_empty(3)).unwrap();
    assert_eq!(
        exchange.events.end_of(OTHER),
        Some(StreamEnd::Complete),
        "{}",
        case.name
    );
    (verdict, exchange, kinds)
}

#[test]
fn each_violation_has_its_outcome_in_any_pieces() {
    let cases = [
        compressed_fields(),
        field_blocks(),
        heads(),
        streams(),
        stream_frames(),
        settings_and_pings(),
        connection(),
    ];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    for case in &cases {
        let (verdict, whole, kinds) = run(case, usize::MAX);
        assert_eq!(verdict, case.verdict, "{}", case.name);
        let resets = kinds
            .iter()
            .filter(|kind| **kind == kind::RST_STREAM)
            .count();
        let goaways = kinds.iter().filter(|kind| **kind == kind::GOAWAY).count();
        let expected = match verdict {
            CaseOutcome::Connection(..) => (0, 1),
            CaseOutcome::Stream(_) => (1, 0),
            CaseOutcome::Complete | CaseOutcome::Open => (0, 0),
        };
        assert_eq!((resets, goaways), expected, "{}", case.name);
        for length in [1, 7, 1000] {
            let (pieces, exchange, _) = run(case, length);
            assert_eq!(pieces, verdict, "{} in pieces of {length}", case.name);
            assert_eq!(exchange.events.0, whole.events.0, "{}", case.name);
        }
    }
}

#[test]
fn the_first_frame_has_to_be_settings() {
    for first in [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, flag::ACK, 0, b""),
        frame(99, 0, 0, b""),
        goaway(0, 0),
    ] {
        let mut exchange = Exchange::before_settings();
        let error = exchange.receive(&first).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the first frame is not SETTINGS (PROTOCOL_ERROR)"
        );
    }
    let mut exchange = Exchange::before_settings();
    exchange.open(GUILTY);
    let error = exchange.receive(&data(1, 0, b"a")).unwrap_err();
    assert_eq!(error.code, ErrorCode::PROTOCOL_ERROR);
}

/// A server can make each stream fail, so that the client sends a reset for each ("MadeYouReset"). It cannot cause
/// more than one for a stream that the client has opened.
#[test]
fn a_server_causes_one_reset_per_stream_at_most() {
    let mut exchange = Exchange::new();
    for token in 0..2_000 {
        let stream = exchange.open(token).number();
        exchange.discard_output();
        let fault = match token % 3 {
            0 => window_update(stream, 0),
            1 => window_update(stream, (1 << 31) - 1),
            _ => data(stream, 0, b"too early"),
        };
        exchange.receive(&fault.repeat(3)).unwrap();
        assert_eq!(exchange.kinds(), [kind::RST_STREAM]);
    }
    assert_eq!(exchange.client.counters().resets_sent.total(), 2_000);
}

//! Servers that violate the protocol or exhaust resources: each case has its outcome, in any pieces.

use posthaste_http_streams::http3::ErrorCode;
use posthaste_http_streams::http3::frame::kind;
use posthaste_http_streams::{ErrorCode as AnyCode, StreamEnd, StreamRejection};

use super::support::{
    CONTROL, Exchange, ServerAct, data, frame, goaway, headers, integer, ok, settings,
};

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

struct Case {
    name: &'static str,
    acts: Vec<ServerAct>,
    outcome: CaseOutcome,
}

fn case(name: &'static str, outcome: CaseOutcome, acts: &[ServerAct]) -> Case {
    Case {
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

/// Sections that cannot be decoded, or decode to too much.
fn field_sections() -> Vec<Case> {
    let many = [&b"\x00\x00\xd9"[..], &[0xff, 22].repeat(20_000)].concat();
    let large = [&b"\x00\x00\xd9"[..], &b"\x23abc\x00".repeat(8_000)].concat();
    vec![
        case("no section", DECOMPRESSION, &[fields(b"")]),
        case("a section of one byte", DECOMPRESSION, &[fields(b"\x00")]),
        case(
            "Required Insert Count",
            DECOMPRESSION,
            &[fields(b"\x02\x00\xd9")],
        ),
        case("a negative base", DECOMPRESSION, &[fields(b"\x00\x80\xd9")]),
        case(
            "a dynamic field",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x80")],
        ),
        case(
            "a dynamic name",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x40\x01a")],
        ),
        case(
            "a post-base field",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x10")],
        ),
        case(
            "a post-base name",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x00\x01a")],
        ),
        case("index 99", DECOMPRESSION, &[fields(b"\x00\x00\xff\x24")]),
        case(
            "integer beyond 32 bits",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xff\xff\xff\xff\xff\xff\x01")],
        ),
        case(
            "cut string",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x21a\x05ab")],
        ),
        case(
            "Huffman padding of zeros",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x21a\x81\x00")],
        ),
        case(
            "Huffman end of string",
            DECOMPRESSION,
            &[fields(b"\x00\x00\xd9\x21a\x84\xff\xff\xff\xff")],
        ),
        case("QPACK bomb", EXCESSIVE, &[fields(&many)]),
        case("many fields", EXCESSIVE, &[fields(&large)]),
        case(
            "a section above 256 KiB",
            EXCESSIVE,
            &[reply(&[
                vec![kind::HEADERS as u8],
                integer((256 << 10) + 1),
            ])],
        ),
        case(
            "a section of 2^62 bytes",
            EXCESSIVE,
            &[reply(&[vec![kind::HEADERS as u8], vec![0xff; 8]])],
        ),
        case(
            "an invalid section in trailers",
            DECOMPRESSION,
            &[reply(&[ok()]), fields(b"\x00\x00\x80")],
        ),
    ]
}

/// Malformed replies.
fn messages() -> Vec<Case> {
    let length = |value| headers(&[(":status", "200"), ("content-length", value)]);
    vec![
        case(
            "a reply without :status",
            MALFORMED,
            &[reply(&[headers(&[("a", "b")])])],
        ),
        case(
            "status 101",
            MALFORMED,
            &[reply(&[headers(&[(":status", "101")])])],
        ),
        case(
            "upper case",
            MALFORMED,
            &[reply(&[headers(&[(":status", "200"), ("A", "b")])])],
        ),
        case(
            "a field about the connection",
            MALFORMED,
            &[reply(&[headers(&[(":status", "200"), ("upgrade", "b")])])],
        ),
        case(
            "a field of requests",
            MALFORMED,
            &[fields(b"\x00\x00\xd9\xc1")],
        ),
        case(
            "content too short",
            MALFORMED,
            &[reply(&[length("3"), data(b"ab")]), FIN],
        ),
        case(
            "content too long",
            MALFORMED,
            &[reply(&[length("3"), data(b"abcd")])],
        ),
        case(
            "content missing before trailers",
            MALFORMED,
            &[reply(&[length("3"), headers(&[("a", "b")])]), FIN],
        ),
        case(
            "content after status 204",
            MALFORMED,
            &[reply(&[headers(&[(":status", "204")]), data(b"a")])],
        ),
        case(":status in trailers", MALFORMED, &[reply(&[ok(), ok()])]),
        case("an end without a reply", MALFORMED, &[FIN]),
        case(
            "an end after an interim reply",
            MALFORMED,
            &[reply(&[headers(&[(":status", "103")])]), FIN],
        ),
        case(
            "endless interim replies",
            EXCESSIVE,
            &[reply(&[headers(&[(":status", "100")]).repeat(101)])],
        ),
        case(
            "100 interim replies",
            COMPLETE,
            &[
                reply(&[headers(&[(":status", "100")]).repeat(100), ok()]),
                FIN,
            ],
        ),
        case(
            "bytes after a malformed reply",
            MALFORMED,
            &[
                reply(&[headers(&[(":status", "0")])]),
                reply(&[data(b"late"), frame(kind::SETTINGS, b"")]),
                FIN,
                ServerAct::Reset(0, ErrorCode::H3_NO_ERROR),
            ],
        ),
    ]
}

/// Frames that a request's stream must not have, or not there.
fn request_frames() -> Vec<Case> {
    let unexpected = guilty(UNEXPECTED);
    let alone = |kind, payload: &[u8]| reply(&[ok(), frame(kind, payload)]);
    let cut = |bytes: &[u8]| [reply(&[ok(), bytes.to_vec()]), FIN];
    let truncated = guilty(ErrorCode::H3_FRAME_ERROR);
    vec![
        case("DATA before HEADERS", unexpected, &[reply(&[data(b"a")])]),
        case(
            "empty DATA before HEADERS",
            unexpected,
            &[reply(&[data(b"")])],
        ),
        case(
            "DATA after an interim reply",
            unexpected,
            &[reply(&[headers(&[(":status", "103")]), data(b"a")])],
        ),
        case(
            "HEADERS after trailers",
            unexpected,
            &[reply(&[
                ok(),
                headers(&[("a", "b")]),
                headers(&[("a", "b")]),
            ])],
        ),
        case(
            "DATA after trailers",
            unexpected,
            &[reply(&[ok(), headers(&[("a", "b")]), data(b"")])],
        ),
        case(
            "SETTINGS of a request",
            unexpected,
            &[alone(kind::SETTINGS, b"")],
        ),
        case(
            "GOAWAY of a request",
            unexpected,
            &[alone(kind::GOAWAY, b"\x00")],
        ),
        case(
            "CANCEL_PUSH of a request",
            unexpected,
            &[alone(kind::CANCEL_PUSH, b"\x00")],
        ),
        case(
            "MAX_PUSH_ID of a request",
            unexpected,
            &[alone(kind::MAX_PUSH_ID, b"\x00")],
        ),
        case("PRIORITY of HTTP/2", unexpected, &[alone(2, b"\x00")]),
        case("PING of HTTP/2", unexpected, &[alone(6, b"\x00")]),
        case("WINDOW_UPDATE of HTTP/2", unexpected, &[alone(8, b"\x00")]),
        case("CONTINUATION of HTTP/2", unexpected, &[alone(9, b"\x00")]),
        case(
            "PUSH_PROMISE",
            guilty(ErrorCode::H3_ID_ERROR),
            &[alone(kind::PUSH_PROMISE, b"\x00\x00\x00\xd9")],
        ),
        case("a type cut by the end", truncated, &cut(b"\x40")),
        case("a length cut by the end", truncated, &cut(b"\x00\x40")),
        case("a missing length", truncated, &cut(b"\x21")),
        case("DATA cut by the end", truncated, &cut(b"\x00\x02a")),
        case("DATA without its content", truncated, &cut(b"\x00\x02")),
        case(
            "HEADERS cut by the end",
            truncated,
            &cut(b"\x01\x04\x00\x00"),
        ),
        case(
            "an unknown frame cut by the end",
            truncated,
            &cut(b"\x21\x04abc"),
        ),
        case(
            "unknown frames",
            COMPLETE,
            &[
                reply(&[
                    frame(0x21, b"a"),
                    frame(0x1f * 1_000 + 0x21, b""),
                    ok(),
                    frame(0x0f07_00, &[7; 300]),
                    data(b"a"),
                    headers(&[("a", "b")]),
                    frame(0x40, b"after trailers"),
                ]),
                FIN,
            ],
        ),
        case(
            "endless unknown frames",
            CaseOutcome::Open,
            &[reply(&[frame(0x21, &[1; 100]).repeat(10_000)])],
        ),
        case(
            "endless empty DATA",
            CaseOutcome::Open,
            &[reply(&[ok(), data(b"").repeat(10_000)])],
        ),
    ]
}

/// Streams that the server must not open, or not close.
fn streams() -> Vec<Case> {
    let creation = connection(ErrorCode::H3_STREAM_CREATION_ERROR);
    let closed = connection(ErrorCode::H3_CLOSED_CRITICAL_STREAM);
    let id = connection(ErrorCode::H3_ID_ERROR);
    let code = ErrorCode::H3_NO_ERROR;
    let mut unknown = Vec::new();
    for number in 0..200u64 {
        let stream = 4 * number + FURTHER;
        unknown.push(on(stream, &integer(0x21 + 0x1f * number)));
        unknown.push(on(stream, &[0; 100]));
        unknown.push(ServerAct::Fin(stream));
    }
    let open: Vec<ServerAct> = (0..200)
        .map(|number| on(4 * number + FURTHER, b"\x21"))
        .collect();
    vec![
        case(
            "a bidirectional stream of the server",
            creation,
            &[on(1, b"\x01")],
        ),
        case(
            "a reset of such a stream",
            creation,
            &[ServerAct::Reset(1, code)],
        ),
        case(
            "a second control stream",
            creation,
            &[on(FURTHER, &settings(&[]))],
        ),
        case(
            "a second encoder stream",
            creation,
            &[on(ENCODER, b"\x02"), on(FURTHER, b"\x02")],
        ),
        case(
            "a second decoder stream",
            creation,
            &[on(DECODER, b"\x03"), on(FURTHER, b"\x03")],
        ),
        case("a stream that was never opened", creation, &[on(8, &ok())]),
        case("bytes on our control stream", creation, &[on(2, b"\x00")]),
        case("a push stream", id, &[on(FURTHER, b"\x01\x00")]),
        case(
            "the end of the control stream",
            closed,
            &[ServerAct::Fin(CONTROL)],
        ),
        case(
            "a reset of the control stream",
            closed,
            &[ServerAct::Reset(CONTROL, code)],
        ),
        case(
            "the end of the encoder stream",
            closed,
            &[on(ENCODER, b"\x02"), ServerAct::Fin(ENCODER)],
        ),
        case(
            "a reset of the decoder stream",
            closed,
            &[on(DECODER, b"\x03"), ServerAct::Reset(DECODER, code)],
        ),
        case(
            "a stop of our control stream",
            closed,
            &[ServerAct::Stop(2, code)],
        ),
        case("many unknown streams", CaseOutcome::Open, &unknown),
        case(
            "many unknown streams at once",
            connection(ErrorCode::H3_EXCESSIVE_LOAD),
            &open,
        ),
        case(
            "a stream without a type",
            CaseOutcome::Open,
            &[
                on(FURTHER, b"\x40"),
                ServerAct::Fin(FURTHER),
                ServerAct::Reset(19, code),
            ],
        ),
    ]
}

/// Instructions of QPACK without a dynamic table.
fn instructions() -> Vec<Case> {
    let encoder = connection(ErrorCode::QPACK_ENCODER_STREAM_ERROR);
    let decoder = connection(ErrorCode::QPACK_DECODER_STREAM_ERROR);
    vec![
        case(
            "a capacity of 0",
            CaseOutcome::Open,
            &[on(ENCODER, b"\x02\x20\x20")],
        ),
        case("a capacity of 1", encoder, &[on(ENCODER, b"\x02\x21")]),
        case(
            "a capacity of 4096",
            encoder,
            &[on(ENCODER, b"\x02\x3f\xe1\x1f")],
        ),
        case(
            "an entry with a static name",
            encoder,
            &[on(ENCODER, b"\x02\xc1\x01a")],
        ),
        case(
            "an entry with a name",
            encoder,
            &[on(ENCODER, b"\x02\x41a\x01b")],
        ),
        case("a duplicate", encoder, &[on(ENCODER, b"\x02\x00")]),
        case(
            "an acknowledgement of a section",
            decoder,
            &[on(DECODER, b"\x03\x80")],
        ),
        case("an increment", decoder, &[on(DECODER, b"\x03\x01")]),
        case("an increment of 0", decoder, &[on(DECODER, b"\x03\x00")]),
        case(
            "cancelled streams",
            CaseOutcome::Open,
            &[on(DECODER, b"\x03\x40\x7f\x81\x01\x44")],
        ),
        case(
            "an endless integer",
            decoder,
            &[on(DECODER, &[&b"\x03\x7f"[..], &[0x80; 20]].concat())],
        ),
    ]
}

/// Frames of the control stream.
fn control_frames() -> Vec<Case> {
    let unexpected = connection(UNEXPECTED);
    let id = connection(ErrorCode::H3_ID_ERROR);
    let layout = connection(ErrorCode::H3_FRAME_ERROR);
    vec![
        case(
            "a second SETTINGS",
            unexpected,
            &[control(&[frame(kind::SETTINGS, b"")])],
        ),
        case(
            "DATA on the control stream",
            unexpected,
            &[control(&[data(b"")])],
        ),
        case(
            "HEADERS on the control stream",
            unexpected,
            &[control(&[ok()])],
        ),
        case(
            "PUSH_PROMISE on the control stream",
            unexpected,
            &[control(&[frame(5, b"\x00")])],
        ),
        case(
            "MAX_PUSH_ID",
            unexpected,
            &[control(&[frame(kind::MAX_PUSH_ID, b"\x00")])],
        ),
        case(
            "PING on the control stream",
            unexpected,
            &[control(&[frame(6, &[0; 8])])],
        ),
        case(
            "CANCEL_PUSH",
            id,
            &[control(&[frame(kind::CANCEL_PUSH, b"\x00")])],
        ),
        case("GOAWAY with a push", id, &[control(&[goaway(3)])]),
        case(
            "GOAWAY with a stream of the server",
            id,
            &[control(&[goaway(1)])],
        ),
        case(
            "GOAWAY that rises",
            id,
            &[control(&[goaway(12), goaway(16)])],
        ),
        case(
            "empty GOAWAY",
            layout,
            &[control(&[frame(kind::GOAWAY, b"")])],
        ),
        case(
            "cut GOAWAY",
            layout,
            &[control(&[frame(kind::GOAWAY, b"\x40")])],
        ),
        case(
            "long GOAWAY",
            layout,
            &[control(&[frame(kind::GOAWAY, b"\x04\x04")])],
        ),
        case(
            "GOAWAY of 9 bytes",
            layout,
            &[control(&[frame(kind::GOAWAY, &[0; 9])])],
        ),
        case(
            "GOAWAY of 2^62 bytes",
            layout,
            &[control(&[vec![kind::GOAWAY as u8], vec![0xff; 8]])],
        ),
        case(
            "GOAWAY above both",
            CaseOutcome::Open,
            &[control(&[goaway(1 << 40), goaway(8)])],
        ),
        case(
            "endless unknown frames of the control stream",
            CaseOutcome::Open,
            &[control(&[frame(0x21, &[1; 100]).repeat(10_000)])],
        ),
        case(
            "an unknown frame of 2^62 bytes",
            CaseOutcome::Open,
            &[control(&[vec![0x21], vec![0xff; 8], vec![0; 100_000]])],
        ),
    ]
}

/// Resets and stops.
fn resets() -> Vec<Case> {
    let refused = CaseOutcome::End(StreamEnd::Rejected(StreamRejection::Refused));
    let with = |code: ErrorCode| CaseOutcome::End(StreamEnd::Reset(code.into()));
    let rejected = ErrorCode::H3_REQUEST_REJECTED;
    let none = ErrorCode::H3_NO_ERROR;
    let internal = ErrorCode::H3_INTERNAL_ERROR;
    let interim = reply(&[headers(&[(":status", "103")])]);
    vec![
        case("a rejection", refused, &[ServerAct::Reset(0, rejected)]),
        case(
            "a rejection by a stop",
            refused,
            &[ServerAct::Stop(0, rejected), ServerAct::Reset(0, rejected)],
        ),
        case(
            "a rejection after an interim reply",
            with(rejected),
            &[interim, ServerAct::Reset(0, rejected)],
        ),
        case(
            "a rejection after a head",
            with(rejected),
            &[reply(&[ok()]), ServerAct::Reset(0, rejected)],
        ),
        case(
            "an internal error",
            with(internal),
            &[ServerAct::Reset(0, internal)],
        ),
        case(
            "a reset without an error",
            with(none),
            &[reply(&[ok(), data(b"a")]), ServerAct::Reset(0, none)],
        ),
        case(
            "a reset after all of the content",
            COMPLETE,
            &[
                reply(&[
                    headers(&[(":status", "200"), ("content-length", "1")]),
                    data(b"a"),
                ]),
                ServerAct::Reset(0, none),
            ],
        ),
        case(
            "a reset inside an unknown frame",
            with(none),
            &[
                reply(&[headers(&[(":status", "204")]), vec![0x21, 5]]),
                ServerAct::Reset(0, none),
            ],
        ),
        case(
            "a stop and a reply",
            COMPLETE,
            &[
                ServerAct::Stop(0, internal),
                reply(&[ok(), data(b"a")]),
                FIN,
                ServerAct::Stop(0, none),
                ServerAct::Reset(0, none),
            ],
        ),
    ]
}

/// Runs a case in pieces of `length` bytes.
fn run(case: &Case, length: usize) -> (CaseOutcome, Exchange) {
    let mut exchange = Exchange::new();
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
        field_sections(),
        messages(),
        request_frames(),
        streams(),
        instructions(),
        control_frames(),
        resets(),
    ];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
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
        let mut exchange = Exchange::before_settings();
        let bytes = [vec![0], first].concat();
        let error = exchange.receive(CONTROL, &bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the first frame of the control stream is not SETTINGS (H3_MISSING_SETTINGS)"
        );
    }
    let mut exchange = Exchange::before_settings();
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
        let mut exchange = Exchange::before_settings();
        let error = exchange.receive(CONTROL, &bytes).unwrap_err();
        assert_eq!(error.code, code, "{bytes:02x?}");
    }
    let mut exchange = Exchange::before_settings();
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

//! Violations on other streams, and the ends of streams.

use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::{StreamEnd, StreamRejection};

use super::super::support::{
    CONTROL, ServerAct, data, frame, goaway, headers, integer, ok, settings,
};
use super::{
    COMPLETE, CaseOutcome, DECODER, ENCODER, FIN, FURTHER, HostileCase, UNEXPECTED, case,
    connection, control, on, reply,
};

/// Streams that the server must not open, or not close.
pub(super) fn streams() -> Vec<HostileCase> {
    let creation = connection(ErrorCode::H3_STREAM_CREATION_ERROR);
    let id = connection(ErrorCode::H3_ID_ERROR);
    let code = ErrorCode::H3_NO_ERROR;
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
    ]
}

/// Ends of streams that must stay open, and unknown streams.
pub(super) fn ends_of_streams() -> Vec<HostileCase> {
    let closed = connection(ErrorCode::H3_CLOSED_CRITICAL_STREAM);
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
pub(super) fn instructions() -> Vec<HostileCase> {
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
pub(super) fn control_frames() -> Vec<HostileCase> {
    let unexpected = connection(UNEXPECTED);
    let id = connection(ErrorCode::H3_ID_ERROR);
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
    ]
}

/// GOAWAY, and unknown frames.
pub(super) fn goaways() -> Vec<HostileCase> {
    let id = connection(ErrorCode::H3_ID_ERROR);
    let layout = connection(ErrorCode::H3_FRAME_ERROR);
    vec![
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
pub(super) fn resets() -> Vec<HostileCase> {
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

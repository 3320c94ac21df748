//! Violations on the stream of a request.

use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::frame::kind;

use super::super::support::{ServerAct, data, frame, headers, integer, ok};
use super::{
    COMPLETE, CaseOutcome, DECOMPRESSION, EXCESSIVE, FIN, HostileCase, MALFORMED, UNEXPECTED, case,
    fields, guilty, reply,
};

/// Sections that cannot be decoded.
pub(super) fn field_sections() -> Vec<HostileCase> {
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
    ]
}

/// Sections that decode to too much.
pub(super) fn large_sections() -> Vec<HostileCase> {
    let many = [&b"\x00\x00\xd9"[..], &[0xff, 22].repeat(20_000)].concat();
    let large = [&b"\x00\x00\xd9"[..], &b"\x23abc\x00".repeat(8_000)].concat();
    vec![
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
pub(super) fn messages() -> Vec<HostileCase> {
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
    ]
}

/// Content that its length or status contradicts, and ends at the wrong place.
pub(super) fn contents() -> Vec<HostileCase> {
    let length = |value| headers(&[(":status", "200"), ("content-length", value)]);
    vec![
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
pub(super) fn request_frames() -> Vec<HostileCase> {
    let unexpected = guilty(UNEXPECTED);
    let alone = |kind, payload: &[u8]| reply(&[ok(), frame(kind, payload)]);
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
    ]
}

/// Frames that the end of the stream cuts, and unknown frames.
pub(super) fn cut_frames() -> Vec<HostileCase> {
    let cut = |bytes: &[u8]| [reply(&[ok(), bytes.to_vec()]), FIN];
    let truncated = guilty(ErrorCode::H3_FRAME_ERROR);
    vec![
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
                    frame(0x000f_0700, &[7; 300]),
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

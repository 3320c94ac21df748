//! Replies as RFC 9113 permits them, and malformed ones.

use posthaste_http::streams::StreamEnd;
use posthaste_http::streams::http2::ErrorCode;
use posthaste_http::streams::http2::frame::{flag, kind};

use crate::streams::support::{Event, Exchange, block, data, frame, headers, ok, ok_empty, reset};

const END: u8 = flag::END_STREAM;

#[test]
fn a_reply_has_a_head_content_and_an_end() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(7).number();
    let fields = [(":status", "200"), ("content-length", "5"), ("server", "x")];
    exchange.receive(&headers(stream, 0, &fields)).unwrap();
    exchange.receive(&data(stream, 0, b"ab")).unwrap();
    exchange.receive(&data(stream, END, b"cde")).unwrap();
    let field = |name: &str, value: &str| Event::Field(7, name.to_owned(), value.to_owned());
    let expected = [
        Event::Head(7, 200),
        field("content-length", "5"),
        field("server", "x"),
        Event::HeadEnd(7),
        Event::Body(7, b"abcde".to_vec()),
        Event::End(7, StreamEnd::Complete),
    ];
    assert_eq!(exchange.events.0, expected);
    assert!(exchange.client.is_idle());
}

#[test]
fn interim_replies_come_before_and_trailers_after() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    let early = [(":status", "103"), ("link", "</a>")];
    exchange.receive(&headers(stream, 0, &early)).unwrap();
    exchange.receive(&ok(stream)).unwrap();
    exchange.receive(&data(stream, 0, b"x")).unwrap();
    let trailers = [("grpc-status", "0")];
    exchange.receive(&headers(stream, END, &trailers)).unwrap();
    let expected = [
        Event::Interim(1, 103),
        Event::Head(1, 200),
        Event::HeadEnd(1),
        Event::Body(1, b"x".to_vec()),
        Event::Trailer(1, "grpc-status".to_owned(), "0".to_owned()),
        Event::End(1, StreamEnd::Complete),
    ];
    assert_eq!(exchange.events.0, expected);
    assert_eq!(exchange.client.counters().interim, 1);
}

#[test]
fn blanks_at_the_ends_of_values_are_taken_off() {
    let mut exchange = Exchange::new();
    let fields = [
        (":status", "200"),
        ("content-length", "1 "),
        ("server", "\t a b \t"),
        ("etag", " "),
    ];
    let trailers = [("grpc-message", "calling: ")];
    // From the third on, an equal block is reported from memory.
    for token in 0..4 {
        let stream = exchange.open(token).number();
        exchange.receive(&headers(stream, 0, &fields)).unwrap();
        exchange.receive(&data(stream, 0, b"x")).unwrap();
        exchange.receive(&headers(stream, END, &trailers)).unwrap();
        let field =
            |name: &str, value: &str| Event::Field(token, name.to_owned(), value.to_owned());
        let expected = [
            Event::Head(token, 200),
            field("content-length", "1"),
            field("server", "a b"),
            field("etag", ""),
            Event::HeadEnd(token),
            Event::Body(token, b"x".to_vec()),
            Event::Trailer(token, "grpc-message".to_owned(), "calling:".to_owned()),
            Event::End(token, StreamEnd::Complete),
        ];
        assert_eq!(exchange.events.0, expected);
        exchange.events.0.clear();
    }
}

#[test]
fn padding_priority_and_continuation_are_taken_off() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    let fields = block(&[(":status", "200"), ("a", "b")]);
    let priority = [0, 0, 0, 0, 16];
    let (first, second) = fields.split_at(4);
    let payload = [&[3][..], &priority, first, &[0; 3]].concat();
    let flags = flag::PADDED | flag::PRIORITY;
    let whole = [
        frame(kind::HEADERS, flags, stream, &payload),
        frame(kind::CONTINUATION, 0, stream, b""),
        frame(kind::CONTINUATION, flag::END_HEADERS, stream, second),
        frame(kind::DATA, flag::PADDED, stream, b"\x02ab\0\0"),
        frame(kind::DATA, flag::PADDED | END, stream, b"\x00c"),
    ];
    exchange.receive(&whole.concat()).unwrap();
    assert_eq!(exchange.events.body_of(1), b"abc");
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
}

#[test]
fn unknown_frames_and_priorities_are_ignored() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    let whole = [
        frame(0x42, 0xff, stream, b"anything"),
        frame(0x42, 0xff, 99, b"anything"),
        frame(kind::PRIORITY, 0, stream, &[0; 5]),
        frame(kind::PRIORITY, 0, 98, &[0; 5]),
        ok_empty(stream),
    ];
    exchange.receive(&whole.concat()).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    assert!(
        exchange
            .frames()
            .iter()
            .all(|(head, _)| head.kind == kind::HEADERS)
    );
}

#[test]
fn replies_without_content_may_state_a_length() {
    let mut exchange = Exchange::new();
    let head = exchange.open_head(1).number();
    let get = exchange.open(2).number();
    let long = |status| [(":status", status), ("content-length", "500")];
    exchange.receive(&headers(head, END, &long("200"))).unwrap();
    exchange.receive(&headers(get, END, &long("304"))).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    assert_eq!(exchange.events.end_of(2), Some(StreamEnd::Complete));
}

#[test]
fn a_reset_after_the_reply_is_no_failure() {
    let mut exchange = Exchange::new();
    let stream = exchange.open_with_body(1);
    exchange.discard_output();
    let whole = [ok_empty(stream.number()), reset(stream.number(), 0)];
    exchange.receive(&whole.concat()).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    // The rest of the request is not sent.
    assert_eq!(exchange.client.send_body(stream, b"rest", true), 0);
    let sent = exchange.client.counters().resets_sent;
    assert_eq!(sent.get(ErrorCode::CANCEL), 1);
    assert_eq!(exchange.client.counters().resets_received.total(), 0);
    assert_eq!(exchange.kinds(), [kind::RST_STREAM]);
}

/// Asserts that a reply of these parts, each for the stream, is malformed with this reason.
fn assert_malformed(parts: &[&dyn Fn(u32) -> Vec<u8>], expected: &str) {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    let other = exchange.open(2).number();
    exchange.discard_output();
    for part in parts {
        exchange.receive(&part(stream)).unwrap();
    }
    match exchange.events.end_of(1) {
        Some(StreamEnd::Malformed { reason, code }) => {
            assert_eq!((reason, code), (expected, ErrorCode::PROTOCOL_ERROR.into()));
        }
        end => panic!("{expected}: the stream has the end {end:?}"),
    }
    exchange.receive(&ok_empty(other)).unwrap();
    assert_eq!(
        exchange.events.end_of(2),
        Some(StreamEnd::Complete),
        "{expected}"
    );
}

/// Fields of a head, and the reason to reject them.
const MALFORMED: &[(&[(&str, &str)], &str)] = &[
    (&[], "a reply without :status"),
    (&[("server", "x")], "the first field is not :status"),
    (
        &[(":status", "200"), (":status", "200")],
        "a reply has two :status",
    ),
    (
        &[(":status", "200"), ("a", "b"), (":status", "200")],
        ":status follows another field",
    ),
    (
        &[(":status", "20")],
        ":status is not a number of three digits",
    ),
    (
        &[(":status", "099")],
        ":status is not a number of three digits",
    ),
    (
        &[(":status", "+20")],
        ":status is not a number of three digits",
    ),
    (
        &[(":status", "101")],
        "status 101, which HTTP/2 and HTTP/3 forbid",
    ),
    (
        &[(":status", "200"), (":path", "/")],
        "a reply has a pseudo-field of requests",
    ),
    (
        &[(":status", "200"), ("Server", "x")],
        "a field has an invalid name",
    ),
    (
        &[(":status", "200"), ("", "x")],
        "a field has an invalid name",
    ),
    (
        &[(":status", "200"), ("a b", "x")],
        "a field has an invalid name",
    ),
    (
        &[(":status", "200"), ("a", "x\r\ny: z")],
        "a field has an invalid value",
    ),
    (
        &[(":status", "200"), ("a", " x\n ")],
        "a field has an invalid value",
    ),
    (&[(":status", "200 ")], "a field has an invalid value"),
    (
        &[(":status", "200"), ("Server", "x ")],
        "a field has an invalid name",
    ),
    (
        &[(":status", "200"), ("connection", "close ")],
        "a field about the connection, which HTTP/2 and HTTP/3 forbid",
    ),
    (
        &[(":status", "200"), ("te", "trailers")],
        "a field about the connection, which HTTP/2 and HTTP/3 forbid",
    ),
    (
        &[(":status", "200"), ("connection", "close")],
        "a field about the connection, which HTTP/2 and HTTP/3 forbid",
    ),
    (
        &[(":status", "200"), ("transfer-encoding", "chunked")],
        "a field about the connection, which HTTP/2 and HTTP/3 forbid",
    ),
    (
        &[(":status", "200"), ("content-length", "+1")],
        "content-length is not a number",
    ),
    (
        &[
            (":status", "200"),
            ("content-length", "99999999999999999999"),
        ],
        "content-length is not a number",
    ),
    (
        &[
            (":status", "200"),
            ("content-length", "1"),
            ("content-length", "2"),
        ],
        "two different content-length",
    ),
];

#[test]
fn malformed_fields_end_their_stream_only() {
    for (fields, expected) in MALFORMED {
        assert_malformed(&[&|stream| headers(stream, 0, fields)], expected);
        assert_malformed(&[&|stream| headers(stream, END, fields)], expected);
    }
}

#[test]
fn malformed_sequences_end_their_stream_only() {
    let length = |stream| headers(stream, 0, &[(":status", "200"), ("content-length", "3")]);
    let trailers = |stream| headers(stream, 0, &[("a", "b")]);
    let status = |stream| headers(stream, END, &[(":status", "200")]);
    let early = |stream| headers(stream, END, &[(":status", "103")]);
    let none = |stream| headers(stream, 0, &[(":status", "204")]);
    let content = |stream| data(stream, 0, b"1234");
    let short = |stream| data(stream, END, b"12");
    assert_malformed(&[&content], "content before the head of the reply");
    assert_malformed(&[&ok, &trailers], "trailers do not end the stream");
    assert_malformed(&[&ok, &status], "trailers have :status");
    assert_malformed(&[&early], "an interim reply ends the stream");
    assert_malformed(&[&none, &content], "content in a reply that has none");
    assert_malformed(&[&length, &content], "content longer than content-length");
    assert_malformed(&[&length, &short], "content shorter than content-length");
    let ended = |stream| headers(stream, END, &[("a", "b")]);
    assert_malformed(&[&length, &ended], "content shorter than content-length");
}

#[test]
fn a_stream_that_both_ends_closed_is_not_reset() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    exchange.discard_output();
    exchange
        .receive(&headers(stream, END, &[("a", "b")]))
        .unwrap();
    assert!(matches!(
        exchange.events.end_of(1),
        Some(StreamEnd::Malformed { .. })
    ));
    assert!(exchange.client.output().is_empty());
}

#[test]
fn late_frames_of_a_reset_stream_are_ignored_and_decoded() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1);
    let other = exchange.open(2).number();
    assert!(exchange.client.reset(stream, ErrorCode::CANCEL));
    assert!(!exchange.client.reset(stream, ErrorCode::CANCEL));
    exchange.discard_output();
    let late = stream.number();
    // The block adds an entry to the table that the other reply uses.
    let indexed = b"\x88\x40\x01a\x01b";
    let whole = [
        frame(kind::HEADERS, flag::END_HEADERS, late, indexed),
        data(late, END, b"late"),
        reset(late, 8),
        frame(kind::HEADERS, flag::END_HEADERS | END, other, b"\x88\xbe"),
    ];
    exchange.receive(&whole.concat()).unwrap();
    let field = Event::Field(2, "a".to_owned(), "b".to_owned());
    assert!(exchange.events.0.contains(&field));
    assert_eq!(exchange.events.end_of(1), None);
    assert_eq!(exchange.client.counters().late_frames, 2);
    assert!(exchange.client.output().is_empty());
}

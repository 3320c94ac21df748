//! Replies as the caller sees them.

use posthaste_http::streams::StreamEnd;
use posthaste_http::streams::http3::frame::kind;

use super::support::{ScriptedExchange, data, frame, headers};
use crate::streams::support::Event;

/// A reply with all its parts.
fn full_reply() -> Vec<u8> {
    let head = [(":status", "200"), ("content-length", "5"), ("etag", "x")];
    [
        headers(&[(":status", "103"), ("link", "a")]),
        headers(&head),
        data(b"abc"),
        frame(0x21, b"unknown"),
        data(b"de"),
        headers(&[("grpc-status", "0")]),
    ]
    .concat()
}

fn expected(token: u32) -> Vec<Event> {
    let field = |name: &str, value: &str| Event::Field(token, name.to_owned(), value.to_owned());
    vec![
        Event::Interim(token, 103),
        Event::Head(token, 200),
        field("content-length", "5"),
        field("etag", "x"),
        Event::HeadEnd(token),
        Event::Body(token, b"abcde".to_vec()),
        Event::Trailer(token, "grpc-status".to_owned(), "0".to_owned()),
        Event::End(token, StreamEnd::Complete),
    ]
}

#[test]
fn a_reply_has_the_same_events_in_any_pieces() {
    let reply = full_reply();
    for length in 1..=reply.len() {
        let mut exchange = ScriptedExchange::new();
        let stream = exchange.open(7);
        for piece in reply.chunks(length) {
            exchange.receive(stream, piece).unwrap();
        }
        exchange.receive_last(stream, b"").unwrap();
        assert_eq!(exchange.events.0, expected(7), "pieces of {length}");
    }
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open(7);
    exchange.receive_last(stream, &reply).unwrap();
    assert_eq!(exchange.events.0, expected(7));
}

#[test]
fn blanks_at_the_ends_of_values_are_taken_off() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open(1);
    let head = [
        (":status", "200"),
        ("content-length", " 1"),
        ("etag", "x\t"),
    ];
    let reply = [
        headers(&head),
        data(b"a"),
        headers(&[("grpc-message", "calling: ")]),
    ];
    exchange.receive_last(stream, &reply.concat()).unwrap();
    let field = |name: &str, value: &str| Event::Field(1, name.to_owned(), value.to_owned());
    let expected = [
        Event::Head(1, 200),
        field("content-length", "1"),
        field("etag", "x"),
        Event::HeadEnd(1),
        Event::Body(1, b"a".to_vec()),
        Event::Trailer(1, "grpc-message".to_owned(), "calling:".to_owned()),
        Event::End(1, StreamEnd::Complete),
    ];
    assert_eq!(exchange.events.0, expected);
}

#[test]
fn interleaved_replies_are_separate() {
    let mut exchange = ScriptedExchange::new();
    let streams: Vec<u64> = (0..5).map(|token| exchange.open(token)).collect();
    for byte in full_reply() {
        for stream in &streams {
            exchange.receive(*stream, &[byte]).unwrap();
        }
    }
    for stream in &streams {
        exchange.receive_last(*stream, b"").unwrap();
    }
    for token in 0..5 {
        assert_eq!(exchange.events.body_of(token), b"abcde");
        assert_eq!(exchange.events.end_of(token), Some(StreamEnd::Complete));
    }
    assert_eq!(exchange.client.counters().interim, 5);
}

#[test]
fn an_equal_head_is_reported_from_memory() {
    let mut exchange = ScriptedExchange::new();
    for token in 0..4 {
        let stream = exchange.open(token);
        exchange.receive_last(stream, &full_reply()).unwrap();
    }
    let events: Vec<Event> = (0..4).flat_map(expected).collect();
    assert_eq!(exchange.events.0, events);
}

#[test]
fn a_reply_to_head_has_a_length_and_no_content() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open_as(1, false, true);
    let head = headers(&[(":status", "200"), ("content-length", "5")]);
    exchange.receive_last(stream, &head).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    let stream = exchange.open_as(2, false, true);
    let with_content = [head, data(b"abcde")].concat();
    exchange.receive_last(stream, &with_content).unwrap();
    let end = exchange.events.end_of(2);
    assert!(matches!(end, Some(StreamEnd::Malformed { .. })), "{end:?}");
}

#[test]
fn fields_of_the_static_table_have_names_and_values() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open(1);
    // :status 304, content-type text/html; charset=utf-8, age with the value 9.
    let section = b"\x00\x00\xda\xf4\x52\x019";
    exchange
        .receive_last(stream, &frame(kind::HEADERS, section))
        .unwrap();
    let field = |name: &str, value: &str| Event::Field(1, name.to_owned(), value.to_owned());
    let expected = [
        Event::Head(1, 304),
        field("content-type", "text/html; charset=utf-8"),
        field("age", "9"),
        Event::HeadEnd(1),
        Event::End(1, StreamEnd::Complete),
    ];
    assert_eq!(exchange.events.0, expected);
}

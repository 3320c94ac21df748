//! Replies whose field blocks are equal, while the dynamic table stays the same and while it changes.

use posthaste_http::streams::StreamEnd;
use posthaste_http::streams::http2::ErrorCode;
use posthaste_http::streams::http2::frame::{flag, kind};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::streams::support::{Event, Exchange, block, data, frame};

const END: u8 = flag::END_STREAM;

/// Index of the newest entry of the dynamic table.
const NEWEST: u8 = 62;

type Fields = Vec<(String, String)>;

/// Opens a stream and receives a reply without content. Returns its fields.
fn reply(exchange: &mut Exchange, token: u32, block: &[u8]) -> Fields {
    let stream = exchange.open(token).number();
    exchange.discard_output();
    exchange.events.0.clear();
    let head = frame(kind::HEADERS, flag::END_HEADERS | END, stream, block);
    exchange.receive(&head).unwrap();
    let (first, rest) = exchange.events.0.split_first().unwrap();
    let (last, fields) = rest.split_last().unwrap();
    assert_eq!(*first, Event::Head(token, 200));
    assert_eq!(*last, Event::End(token, StreamEnd::Complete));
    let (end, fields) = fields.split_last().unwrap();
    assert_eq!(*end, Event::HeadEnd(token));
    let fields = fields.iter().map(|event| match event {
        Event::Field(other, name, value) if *other == token => (name.clone(), value.clone()),
        other => panic!("{other:?} is no field of {token}"),
    });
    fields.collect()
}

/// A literal with a name of one byte that enters the table.
fn insertion(name: u8, value: u8) -> [u8; 5] {
    [0x40, 1, name, 1, value]
}

/// A connection whose table has the entry `a: 1`.
fn with_entry() -> Exchange {
    let mut exchange = Exchange::new();
    let block = [&[0x88][..], &insertion(b'a', b'1')].concat();
    reply(&mut exchange, 0, &block);
    exchange
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    let owned = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

#[test]
fn equal_blocks_have_equal_fields() {
    let mut exchange = Exchange::new();
    let pairs = [(":status", "200"), ("date", "now"), ("server", "x")];
    let bytes = block(&pairs);
    for token in 0..6 {
        assert_eq!(reply(&mut exchange, token, &bytes), fields(&pairs[1..]));
    }
}

#[test]
fn the_length_of_content_is_checked_after_equal_blocks() {
    let mut exchange = Exchange::new();
    let bytes = block(&[(":status", "200"), ("content-length", "3")]);
    for (token, content) in (0..).zip(["abc", "abc", "abc", "abcd", "ab", "abc"]) {
        let stream = exchange.open(token).number();
        let head = frame(kind::HEADERS, flag::END_HEADERS, stream, &bytes);
        exchange.receive(&head).unwrap();
        exchange
            .receive(&data(stream, END, content.as_bytes()))
            .unwrap();
        let end = exchange.events.end_of(token).unwrap();
        assert_eq!(end == StreamEnd::Complete, content.len() == 3, "{end:?}");
    }
}

#[test]
fn a_malformed_block_is_malformed_each_time() {
    let mut exchange = Exchange::new();
    let bytes = block(&[(":status", "200"), ("connection", "close")]);
    for token in 0..4 {
        let stream = exchange.open(token).number();
        let head = frame(kind::HEADERS, flag::END_HEADERS | END, stream, &bytes);
        exchange.receive(&head).unwrap();
        let end = exchange.events.end_of(token);
        assert!(matches!(end, Some(StreamEnd::Malformed { .. })), "{end:?}");
    }
}

#[test]
fn an_insertion_changes_the_fields_of_an_equal_block() {
    let mut exchange = with_entry();
    let index = [0x88, 0x80 | NEWEST];
    for token in 1..5 {
        assert_eq!(reply(&mut exchange, token, &index), fields(&[("a", "1")]));
    }
    // The insertion is in trailers, between two equal blocks.
    let stream = exchange.open(5).number();
    let head = frame(kind::HEADERS, flag::END_HEADERS, stream, &index);
    exchange.receive(&head).unwrap();
    let flags = flag::END_HEADERS | END;
    let trailers = frame(kind::HEADERS, flags, stream, &insertion(b'b', b'2'));
    exchange.receive(&trailers).unwrap();
    for token in 6..10 {
        assert_eq!(reply(&mut exchange, token, &index), fields(&[("b", "2")]));
    }
}

#[test]
fn an_eviction_invalidates_an_equal_block() {
    let mut exchange = with_entry();
    let index = [0x88, 0x80 | NEWEST];
    for token in 1..5 {
        reply(&mut exchange, token, &index);
    }
    // A table of no bytes, for a stream that was reset.
    let late = exchange.open(5);
    exchange.client.reset(late, ErrorCode::CANCEL);
    let update = frame(
        kind::HEADERS,
        flag::END_HEADERS,
        late.number(),
        &[0x20, 0x88],
    );
    exchange.receive(&update).unwrap();
    let stream = exchange.open(6).number();
    let head = frame(kind::HEADERS, flag::END_HEADERS, stream, &index);
    let error = exchange.receive(&head).unwrap_err();
    assert_eq!(error.code, ErrorCode::COMPRESSION_ERROR);
}

#[test]
fn long_blocks_repeat() {
    let mut exchange = Exchange::new();
    // A short block whose fields are long, and a long block.
    let long = "v".repeat(3_000);
    let short = block(&[(":status", "200"), ("a", "b")]);
    assert_eq!(reply(&mut exchange, 0, &short).len(), 1);
    let entry = [
        &[0x88, 0x40, 1, b'n', 0x7f, 0xb9, 0x16][..],
        long.as_bytes(),
    ]
    .concat();
    assert_eq!(reply(&mut exchange, 1, &entry), fields(&[("n", &long)]));
    let twice = [0x88, 0x80 | NEWEST, 0x80 | NEWEST];
    let literal = [&[0x88, 0, 1, b'n', 0x7f, 0xb9, 0x16][..], long.as_bytes()].concat();
    let two = [&literal[..], &literal[1..]].concat();
    for bytes in [&twice[..], &two] {
        for token in 2..7 {
            let expected = fields(&[("n", &long), ("n", &long)]);
            assert_eq!(reply(&mut exchange, token, bytes), expected);
        }
    }
}

/// Blocks of a script: few different ones, so that equal blocks are neighbours.
fn script() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        (b'a'..b'c', b'0'..b'2').prop_map(|(name, value)| insertion(name, value).to_vec()),
        (NEWEST..NEWEST + 2).prop_map(|index| vec![0x80 | index]),
    ];
    vec(vec(part, 0..3).prop_map(|parts| parts.concat()), 1..40)
}

/// The fields of a block. `table` has the entries, oldest first.
fn decoded(mut block: &[u8], table: &mut Vec<(String, String)>) -> Option<Fields> {
    let mut fields = Fields::new();
    while let Some((first, rest)) = block.split_first() {
        if *first == 0x40 {
            let text = |byte: u8| char::from(byte).to_string();
            table.push((text(rest[1]), text(rest[3])));
            fields.extend(table.last().cloned());
            block = &rest[4..];
        } else {
            let age = usize::from(first - (0x80 | NEWEST)) + 1;
            fields.push(table[table.len().checked_sub(age)?].clone());
            block = rest;
        }
    }
    Some(fields)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn each_block_has_the_fields_that_a_model_decodes(script in script()) {
        let mut exchange = Exchange::new();
        let mut table = Vec::new();
        for (token, parts) in (0..).zip(script) {
            let Some(expected) = decoded(&parts, &mut table) else { break };
            let bytes = [&[0x88][..], &parts].concat();
            prop_assert_eq!(reply(&mut exchange, token, &bytes), expected);
        }
    }
}

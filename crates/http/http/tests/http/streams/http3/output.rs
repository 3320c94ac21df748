//! Output for the transport: order, blocked streams, bodies, limits.

use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::http3::{ErrorCode, OutputAction, StreamId};
use posthaste_http::streams::{OpenError, StreamEnd, StreamRequest};

use super::support::{CONTROL, ScriptedExchange, data, goaway, ok, parse, settings};

/// Length of the HEADERS of a request, in bytes.
const HEADERS: usize = 10;

/// The stream of the next action, which is a write.
fn next_write(exchange: &mut ScriptedExchange) -> Option<u64> {
    match exchange.client.output()? {
        OutputAction::Write { stream, .. } => Some(stream.number()),
        action => panic!("a write instead of {action:?}"),
    }
}

#[test]
fn the_control_stream_and_each_request_come_in_order() {
    let mut exchange = ScriptedExchange::before_settings();
    for token in 0..3 {
        exchange.open(token);
    }
    assert_eq!(next_write(&mut exchange), Some(2));
    exchange.flush();
    assert_eq!(exchange.sent[&2].bytes[..3], [0, kind::SETTINGS as u8, 9]);
    for stream in [0, 4, 8] {
        let sent = &exchange.sent[&stream];
        assert!(sent.fin);
        // :method GET, :scheme https, :authority "a", :path "/".
        let section = b"\x00\x00\xd1\xd7\x50\x01a\xc1".to_vec();
        assert_eq!(parse(&sent.bytes), [(kind::HEADERS, section)]);
    }
    assert_eq!(exchange.client.output(), None);
}

#[test]
fn bytes_are_accepted_in_any_pieces() {
    let mut exchange = ScriptedExchange::before_settings();
    exchange.open(1);
    while exchange.pass(1) {}
    let mut whole = ScriptedExchange::before_settings();
    whole.open(1);
    whole.flush();
    assert_eq!(exchange.sent, whole.sent);
}

#[test]
fn a_blocked_stream_delays_no_other() {
    let mut exchange = ScriptedExchange::new();
    let first = exchange.open_as(1, true, false);
    let id = StreamId::new(first);
    assert_eq!(
        exchange.client.send_body(id, &[7; 1_000_000], true),
        (64 << 10) - HEADERS
    );
    exchange.pass(100);
    exchange.client.blocked(id);
    // A second blocked stream, and one that is not blocked.
    let second = exchange.open(2);
    exchange.client.blocked(StreamId::new(second));
    let third = exchange.open(3);
    assert_eq!(next_write(&mut exchange), Some(third));
    exchange.flush();
    assert!(exchange.sent[&third].fin && !exchange.sent.contains_key(&second));
    assert_eq!(exchange.client.next_writable(), None);
    assert_eq!(exchange.client.counters().stalled, 1);
    exchange.client.writable(StreamId::new(second));
    exchange.client.writable(id);
    exchange.flush();
    assert!(exchange.sent[&second].fin && !exchange.sent[&first].fin);
    assert_eq!(exchange.client.next_writable(), Some((id, 1)));
}

#[test]
fn a_body_is_sent_in_parts() {
    let body: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open_as(1, true, false);
    let id = StreamId::new(stream);
    let mut taken = exchange.client.send_body(id, &body, true);
    while taken < body.len() {
        assert!(exchange.pass(10_000), "the output has the rest");
        while let Some((writable, token)) = exchange.client.next_writable() {
            assert_eq!((writable, token), (id, 1));
            taken += exchange.client.send_body(id, &body[taken..], true);
        }
    }
    exchange.flush();
    let sent = &exchange.sent[&stream];
    assert!(sent.fin);
    let frames = parse(&sent.bytes);
    assert_eq!(frames[0].0, kind::HEADERS);
    let parts = frames[1..]
        .iter()
        .inspect(|(other, _)| assert_eq!(*other, kind::DATA));
    let parts: Vec<u8> = parts.flat_map(|(_, part)| part.clone()).collect();
    assert_eq!(parts, body);
    exchange.receive_last(stream, &ok()).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    assert_eq!(exchange.ends_of(stream), (None, None));
}

#[test]
fn an_empty_body_has_an_end() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open_as(1, true, false);
    exchange.flush();
    assert!(!exchange.sent[&stream].fin);
    assert_eq!(
        exchange.client.send_body(StreamId::new(stream), b"", true),
        0
    );
    exchange.flush();
    assert!(exchange.sent[&stream].fin);
}

#[test]
fn many_bodies_share_the_output() {
    let mut exchange = ScriptedExchange::new();
    let body = [1; 60_000];
    let streams: Vec<u64> = (0..10)
        .map(|token| exchange.open_as(token, true, false))
        .collect();
    let mut taken = [0; 10];
    for (stream, taken) in streams.iter().zip(&mut taken) {
        *taken = exchange
            .client
            .send_body(StreamId::new(*stream), &body, true);
    }
    assert!(taken.iter().sum::<usize>() <= 256 << 10);
    assert_eq!(
        (exchange.client.room(), exchange.client.next_writable()),
        (0, None)
    );
    let refused = exchange.client.open(10, &StreamRequest::default());
    assert_eq!(refused, Err(OpenError::Full));
    for _ in 0..1_000 {
        exchange.pass(10_000);
        while let Some((id, token)) = exchange.client.next_writable() {
            let taken = &mut taken[token as usize];
            *taken += exchange.client.send_body(id, &body[*taken..], true);
        }
    }
    assert_eq!(taken, [60_000; 10]);
    assert!(streams.iter().all(|stream| exchange.sent[stream].fin));
    assert_eq!(exchange.client.room(), 990);
}

#[test]
fn a_cancelled_stream_is_reset_as_far_as_it_is_open() {
    let code = ErrorCode::H3_REQUEST_CANCELLED;
    let mut exchange = ScriptedExchange::new();
    let sent = exchange.open(1);
    exchange.flush();
    let unsent = exchange.open(2);
    for stream in [sent, unsent] {
        assert!(exchange.client.reset(StreamId::new(stream), code));
        assert!(!exchange.client.reset(StreamId::new(stream), code));
    }
    exchange.flush();
    assert_eq!(exchange.ends_of(sent), (None, Some(code)));
    assert_eq!(exchange.ends_of(unsent), (Some(code), Some(code)));
    assert!(exchange.sent[&unsent].bytes.is_empty());
    // Late bytes mean nothing.
    exchange.receive_last(sent, &data(b"late")).unwrap();
    let counters = exchange.client.counters();
    assert_eq!((counters.cancelled, counters.resets_sent.get(code)), (2, 2));
    assert!(exchange.events.0.is_empty() && exchange.client.is_idle());
}

#[test]
fn an_early_reply_ends_the_request() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open_as(1, true, false);
    exchange
        .client
        .send_body(StreamId::new(stream), b"part", false);
    exchange.flush();
    exchange.receive_last(stream, &ok()).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    exchange.flush();
    let code = ErrorCode::H3_REQUEST_CANCELLED;
    assert_eq!(exchange.ends_of(stream), (Some(code), None));
    assert_eq!(
        exchange
            .client
            .send_body(StreamId::new(stream), b"rest", true),
        0
    );
}

#[test]
fn a_stopped_request_awaits_its_reply() {
    let mut exchange = ScriptedExchange::new();
    let stream = exchange.open_as(1, true, false);
    let id = StreamId::new(stream);
    exchange.client.send_body(id, &[1; 100_000], true);
    exchange.pass(10);
    let code = ErrorCode::H3_NO_ERROR;
    exchange
        .client
        .receive_stop(id, code, &mut exchange.events)
        .unwrap();
    exchange.flush();
    assert_eq!(exchange.ends_of(stream), (Some(code), None));
    assert_eq!(exchange.client.send_body(id, b"rest", true), 0);
    assert_eq!(exchange.client.next_writable(), None);
    exchange.receive_last(stream, &ok()).unwrap();
    exchange.flush();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
}

#[test]
fn the_transport_permits_streams() {
    let mut exchange = ScriptedExchange::new();
    assert_eq!(exchange.client.room(), 1_000);
    exchange.client.permit_streams(5);
    assert_eq!(exchange.client.room(), 1_000);
    for token in 0..1_000 {
        exchange.open(token);
    }
    exchange.flush();
    assert_eq!(exchange.client.room(), 0);
    // The end of a stream permits no other one. The transport does.
    exchange.receive_last(0, &ok()).unwrap();
    assert_eq!(exchange.client.room(), 0);
    exchange.client.permit_streams(1_001);
    assert_eq!(exchange.client.room(), 1);
}

#[test]
fn goaway_rejects_streams_without_a_reply() {
    let mut exchange = ScriptedExchange::new();
    for token in 0..4 {
        exchange.open(token);
    }
    exchange.flush();
    exchange.receive(12, &ok()).unwrap();
    exchange.receive(CONTROL, &goaway(4)).unwrap();
    let ends: Vec<Option<StreamEnd>> = (0..4).map(|token| exchange.events.end_of(token)).collect();
    let rejected = Some(StreamEnd::Rejected(
        posthaste_http::streams::StreamRejection::GoAway,
    ));
    assert_eq!(ends, [None, rejected, rejected, None]);
    assert_eq!(
        (exchange.client.room(), exchange.client.is_usable()),
        (0, false)
    );
    let refused = exchange.client.open(9, &StreamRequest::default());
    assert_eq!(refused, Err(OpenError::GoingAway));
    exchange.receive_last(12, b"").unwrap();
    exchange.receive(CONTROL, &goaway(0)).unwrap();
    assert_eq!(exchange.events.end_of(0), rejected);
    assert_eq!(exchange.events.end_of(3), Some(StreamEnd::Complete));
    assert_eq!(exchange.client.counters().goaways.total(), 2);
}

#[test]
fn close_sends_goaway_once() {
    let mut exchange = ScriptedExchange::before_settings();
    exchange.receive(CONTROL, &settings(&[])).unwrap();
    let stream = exchange.open(1);
    exchange.client.close();
    exchange.client.close();
    exchange.flush();
    let frames = parse(&exchange.sent[&2].bytes[1..]);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1], (kind::GOAWAY, vec![0]));
    exchange.receive_last(stream, &ok()).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    assert!(!exchange.client.is_usable());
}

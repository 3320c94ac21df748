//! The end of connections: GOAWAY from either end, PING, and errors.

use posthaste_http::streams::http2::ErrorCode;
use posthaste_http::streams::http2::frame::kind;
use posthaste_http::streams::{OpenError, StreamEnd, StreamRejection, StreamRequest};

use crate::streams::support::{Exchange, data, frame, goaway, ok, ok_empty, reset};

const HIGHEST: u32 = (1 << 31) - 1;

#[test]
fn a_graceful_server_sends_two_goaways() {
    let mut exchange = Exchange::new();
    let streams = [1, 2, 3].map(|token| exchange.open(token).number());
    exchange.receive(&goaway(HIGHEST, 0)).unwrap();
    assert_eq!(exchange.client.room(), 0);
    assert!(!exchange.client.is_usable());
    let refused = exchange.client.open(4, &StreamRequest::default());
    assert_eq!(refused, Err(OpenError::GoingAway));
    assert_eq!(exchange.client.open_streams(), 3);
    exchange.receive(&goaway(streams[1], 0)).unwrap();
    let rejected = StreamEnd::Rejected(StreamRejection::GoAway);
    assert_eq!(exchange.events.end_of(3), Some(rejected));
    exchange.receive(&ok_empty(streams[0])).unwrap();
    exchange.receive(&ok_empty(streams[1])).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
    assert_eq!(exchange.events.end_of(2), Some(StreamEnd::Complete));
    assert!(exchange.client.is_idle());
    assert_eq!(exchange.client.counters().goaways.total(), 2);
    // Frames of a rejected stream do not matter.
    exchange.receive(&ok(streams[2])).unwrap();
    assert_eq!(exchange.client.counters().late_frames, 1);
}

#[test]
fn goaway_reports_its_code_and_text() {
    let mut exchange = Exchange::new();
    exchange.open(1);
    let payload = [&[0, 0, 0, 0, 0, 0, 0, 11][..], b"too_many_pings"].concat();
    exchange
        .receive(&frame(kind::GOAWAY, 0, 0, &payload))
        .unwrap();
    let text = exchange.events.of_connection()[0];
    assert!(
        text.starts_with(
            "GoAway { first_rejected: 1, code: Http2(ErrorCode(11)), debug: [116, 111"
        ),
        "{text}"
    );
    let rejected = StreamEnd::Rejected(StreamRejection::GoAway);
    assert_eq!(exchange.events.end_of(1), Some(rejected));
    let goaways = exchange.client.counters().goaways;
    assert_eq!(goaways.get(ErrorCode::ENHANCE_YOUR_CALM), 1);
}

#[test]
fn a_request_with_a_reply_is_not_rejected() {
    let mut exchange = Exchange::new();
    let streams = [1, 2, 3].map(|token| exchange.open(token).number());
    exchange
        .receive(&[ok(streams[0]), ok(streams[1])].concat())
        .unwrap();
    exchange.receive(&reset(streams[0], 7)).unwrap();
    let refused = StreamEnd::Reset(ErrorCode::REFUSED_STREAM.into());
    assert_eq!(exchange.events.end_of(1), Some(refused));
    // The second continues, and only the third was not processed.
    exchange.receive(&goaway(0, 0)).unwrap();
    let rejected = StreamEnd::Rejected(StreamRejection::GoAway);
    assert_eq!(exchange.events.end_of(3), Some(rejected));
    assert_eq!(exchange.events.end_of(2), None);
    exchange.receive(&reset(streams[1], 8)).unwrap();
    let cancelled = StreamEnd::Reset(ErrorCode::CANCEL.into());
    assert_eq!(exchange.events.end_of(2), Some(cancelled));
}

#[test]
fn resets_are_counted_by_code() {
    let mut exchange = Exchange::new();
    let streams = [1, 2, 3, 4].map(|token| exchange.open(token).number());
    let whole = [
        reset(streams[0], 7),
        reset(streams[1], 8),
        ok(streams[2]),
        reset(streams[2], 0),
        reset(streams[3], 4711),
    ];
    exchange.receive(&whole.concat()).unwrap();
    let ends = [1, 2, 3, 4].map(|token| exchange.events.end_of(token).unwrap());
    let expected = [
        StreamEnd::Rejected(StreamRejection::Refused),
        StreamEnd::Reset(ErrorCode::CANCEL.into()),
        StreamEnd::Reset(ErrorCode::NO_ERROR.into()),
        StreamEnd::Reset(ErrorCode(4711).into()),
    ];
    assert_eq!(ends, expected);
    let counted: Vec<_> = exchange.client.counters().resets_received.iter().collect();
    let expected = [
        ("NO_ERROR", 1),
        ("REFUSED_STREAM", 1),
        ("CANCEL", 1),
        ("other", 1),
    ];
    assert_eq!(counted, expected);
}

#[test]
fn close_lets_open_streams_finish() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    exchange.discard_output();
    exchange.client.close();
    exchange.client.close();
    assert_eq!(exchange.kinds(), [kind::GOAWAY]);
    assert_eq!(exchange.client.room(), 0);
    exchange.receive(&ok_empty(stream)).unwrap();
    assert_eq!(exchange.events.end_of(1), Some(StreamEnd::Complete));
}

#[test]
fn pings_are_answered_and_answers_ignored() {
    let mut exchange = Exchange::new();
    exchange
        .receive(&frame(kind::PING, 0, 0, b"12345678"))
        .unwrap();
    let (head, payload) = exchange.frames().remove(0);
    assert_eq!(
        (head.kind, head.flags, &payload[..]),
        (kind::PING, 1, &b"12345678"[..])
    );
    exchange
        .receive(&frame(kind::PING, 1, 0, b"12345678"))
        .unwrap();
    assert!(exchange.frames().is_empty());
    assert!(exchange.events.of_connection().is_empty());
}

#[test]
fn an_error_names_the_guilty_stream_and_lists_the_others() {
    let mut exchange = Exchange::new();
    let guilty = exchange.open(7).number();
    exchange.open(8);
    exchange.discard_output();
    let broken = frame(kind::HEADERS, 4, guilty, b"\x88\xff\xff\xff\xff\xff\xff");
    let error = exchange.receive(&broken).unwrap_err();
    assert_eq!(
        (error.code, error.token),
        (ErrorCode::COMPRESSION_ERROR, Some(7))
    );
    let mut open: Vec<u32> = exchange
        .client
        .open_tokens()
        .map(|(_, token)| token)
        .collect();
    open.sort_unstable();
    assert_eq!(open, [7, 8]);
    let (head, payload) = exchange.frames().remove(0);
    assert_eq!((head.kind, payload[7]), (kind::GOAWAY, 9));
    assert_eq!(exchange.client.room(), 0);
    // Later bytes change nothing.
    assert_eq!(exchange.receive(&data(guilty, 1, b"")), Err(error));
    assert!(exchange.client.output().is_empty());
}

#[test]
fn a_server_of_http1_is_recognised() {
    let mut exchange = Exchange::before_settings();
    let reply = b"HTTP/1.1 400 Bad StreamRequest\r\nConnection: close\r\n\r\n";
    let error = exchange.receive(reply).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server answers with HTTP/1 (PROTOCOL_ERROR)"
    );
    assert_eq!(error.token, None);
}

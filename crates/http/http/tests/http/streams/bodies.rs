//! Bodies of requests under the server's windows, and contents of replies under ours.

use posthaste_http::streams::http2::ErrorCode;
use posthaste_http::streams::http2::frame::{flag, kind};

use crate::streams::support::{Exchange, data, frame, ok, ok_empty, settings, window_update};

const TABLE_SIZE: u16 = 1;
const STREAMS: u16 = 3;
const WINDOW: u16 = 4;
const FRAME: u16 = 5;

/// Lengths of the DATA frames of the output, which is then sent.
fn sent(exchange: &mut Exchange) -> Vec<usize> {
    let frames = exchange.frames();
    let contents = frames.iter().filter(|(head, _)| head.kind == kind::DATA);
    contents.map(|(_, payload)| payload.len()).collect()
}

#[test]
fn a_body_waits_for_the_window_of_its_stream() {
    let mut exchange = Exchange::new();
    exchange.receive(&settings(&[(WINDOW, 10)])).unwrap();
    let stream = exchange.open_with_body(1);
    assert_eq!(exchange.client.send_body(stream, &[1; 25], true), 10);
    assert_eq!(exchange.client.next_writable(), None);
    exchange
        .receive(&window_update(stream.number(), 4))
        .unwrap();
    assert_eq!(exchange.client.next_writable(), Some((stream, 1)));
    assert_eq!(exchange.client.next_writable(), None);
    assert_eq!(exchange.client.send_body(stream, &[1; 15], true), 4);
    // 25 more by SETTINGS: 35 in all.
    exchange.receive(&settings(&[(WINDOW, 35)])).unwrap();
    assert_eq!(exchange.client.next_writable(), Some((stream, 1)));
    assert_eq!(exchange.client.send_body(stream, &[1; 11], true), 11);
    assert_eq!(sent(&mut exchange), [10, 4, 11]);
    assert_eq!(exchange.client.counters().stalled, 1);
}

#[test]
fn a_window_can_become_negative() {
    let mut exchange = Exchange::new();
    let stream = exchange.open_with_body(1);
    assert_eq!(exchange.client.send_body(stream, &[1; 100], false), 100);
    exchange.receive(&settings(&[(WINDOW, 50)])).unwrap();
    assert_eq!(exchange.client.send_body(stream, &[1; 10], false), 0);
    exchange
        .receive(&window_update(stream.number(), 50))
        .unwrap();
    assert_eq!(exchange.client.next_writable(), None);
    exchange
        .receive(&window_update(stream.number(), 1))
        .unwrap();
    assert_eq!(exchange.client.next_writable(), Some((stream, 1)));
    assert_eq!(exchange.client.send_body(stream, &[1; 10], false), 1);
}

#[test]
fn streams_share_the_window_of_the_connection_in_order() {
    let mut exchange = Exchange::new();
    let streams = [1, 2, 3].map(|token| exchange.open_with_body(token));
    let whole = vec![1; 40_000];
    let taken = streams.map(|stream| exchange.client.send_body(stream, &whole, true));
    assert_eq!(taken, [40_000, 25_535, 0]);
    assert_eq!(exchange.client.next_writable(), None);
    exchange.receive(&window_update(0, 20_000)).unwrap();
    assert_eq!(exchange.client.next_writable(), Some((streams[1], 2)));
    assert_eq!(
        exchange
            .client
            .send_body(streams[1], &whole[25_535..], true),
        14_465
    );
    assert_eq!(exchange.client.next_writable(), Some((streams[2], 3)));
    assert_eq!(exchange.client.send_body(streams[2], &whole, true), 5_535);
    assert_eq!(exchange.client.next_writable(), None);
    // A stream that ended is not offered.
    assert!(exchange.client.reset(streams[2], ErrorCode::CANCEL));
    exchange.receive(&window_update(0, 20_000)).unwrap();
    assert_eq!(exchange.client.next_writable(), None);
    assert_eq!(exchange.client.counters().stalled, 2);
}

#[test]
fn frames_stay_within_the_limit_of_the_server() {
    let mut exchange = Exchange::new();
    exchange.receive(&settings(&[(WINDOW, 1 << 20)])).unwrap();
    exchange.receive(&window_update(0, 1 << 20)).unwrap();
    let stream = exchange.open_with_body(1);
    assert_eq!(
        exchange.client.send_body(stream, &[1; 40_000], false),
        40_000
    );
    assert_eq!(sent(&mut exchange), [16_384, 16_384, 7_232]);
    exchange.receive(&settings(&[(FRAME, 20_000)])).unwrap();
    assert_eq!(
        exchange.client.send_body(stream, &[1; 40_000], true),
        40_000
    );
    assert_eq!(sent(&mut exchange), [20_000, 20_000]);
}

#[test]
fn an_empty_end_needs_no_window() {
    let mut exchange = Exchange::new();
    exchange.receive(&settings(&[(WINDOW, 0)])).unwrap();
    let stream = exchange.open_with_body(1);
    assert_eq!(exchange.client.send_body(stream, b"", true), 0);
    let frames = exchange.frames();
    let (last, _) = frames.last().unwrap();
    assert_eq!((last.kind, last.flags), (kind::DATA, flag::END_STREAM));
}

#[test]
fn the_output_is_bounded_without_a_reader() {
    let mut exchange = Exchange::new();
    exchange.receive(&settings(&[(WINDOW, 1 << 30)])).unwrap();
    exchange.receive(&window_update(0, 1 << 30)).unwrap();
    let stream = exchange.open_with_body(1);
    let whole = vec![1; 1 << 20];
    let taken = exchange.client.send_body(stream, &whole, true);
    assert!(exchange.client.output().len() < (256 << 10) + 100);
    assert_eq!(exchange.client.room(), 0);
    assert_eq!(exchange.client.next_writable(), None);
    exchange.client.sent(exchange.client.output().len() / 2);
    assert_eq!(exchange.client.next_writable(), Some((stream, 1)));
    assert!(exchange.client.send_body(stream, &whole[taken..], true) > 0);
    assert!(exchange.client.output().len() < (256 << 10) + 100);
    assert_eq!(
        exchange.client.counters().stalled,
        0,
        "no window stopped it"
    );
}

#[test]
fn the_limit_of_streams_follows_the_server() {
    let mut exchange = Exchange::before_settings();
    assert_eq!(exchange.client.room(), 100);
    exchange.open(1);
    assert_eq!(exchange.client.room(), 99);
    exchange.receive(&settings(&[(STREAMS, 3)])).unwrap();
    assert_eq!(exchange.client.room(), 2);
    assert_eq!(
        exchange.events.of_connection(),
        ["Limit(3)", "SettingsChanged"]
    );
    let stream = exchange.open(2).number();
    exchange.receive(&settings(&[(STREAMS, 0)])).unwrap();
    assert_eq!(exchange.client.room(), 0);
    exchange.receive(&settings(&[(STREAMS, 2)])).unwrap();
    assert_eq!(exchange.client.room(), 0);
    exchange.receive(&ok_empty(stream)).unwrap();
    assert_eq!(exchange.client.room(), 1);
    let acknowledged = exchange.frames().into_iter();
    let settings = acknowledged.filter(|(head, _)| head.kind == kind::SETTINGS);
    assert_eq!(settings.filter(|(head, _)| head.has(flag::ACK)).count(), 3);
}

#[test]
fn several_changes_of_the_table_are_announced_in_the_next_block() {
    let mut exchange = Exchange::new();
    let changes = [(TABLE_SIZE, 0), (TABLE_SIZE, 4096)];
    exchange.receive(&settings(&changes)).unwrap();
    exchange.discard_output();
    exchange.open(1);
    let (_, block) = &exchange.frames()[0];
    assert!(block.starts_with(b"\x20\x3f\xe1\x1f"));
}

#[test]
fn large_field_blocks_continue_in_further_frames() {
    use posthaste_http::streams::StreamRequest;
    use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
    use posthaste_http::streams::http2::Http2StreamClient;
    use posthaste_http::streams::http2::hpack::{BlockDecoder, FieldPlan};

    let mut catalogue = FieldCatalogue::default();
    let field = catalogue.variable(b"x-large").unwrap();
    let mut client = Http2StreamClient::new(std::sync::Arc::new(FieldPlan::new(&catalogue)));
    client.sent(client.output().len());
    let value = vec![b'~'; 40_000];
    let request = StreamRequest {
        fields: &[RequestField::Variable(field, &value)],
        ..StreamRequest::default()
    };
    client.open(1, &request).unwrap();
    let frames = crate::streams::support::parse(client.output());
    let kinds: Vec<(u8, u8)> = frames
        .iter()
        .map(|(head, _)| (head.kind, head.flags))
        .collect();
    assert_eq!(
        kinds,
        [
            (kind::HEADERS, flag::END_STREAM),
            (kind::CONTINUATION, 0),
            (kind::CONTINUATION, flag::END_HEADERS)
        ]
    );
    let block: Vec<u8> = frames
        .into_iter()
        .flat_map(|(_, payload)| payload)
        .collect();
    let mut decoded = Vec::new();
    let mut decoder = BlockDecoder::default();
    decoder
        .decode(&block, |field| decoded = field.value.to_vec())
        .unwrap();
    assert_eq!(decoded, value);
}

#[test]
fn values_with_line_ends_are_refused() {
    use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
    use posthaste_http::streams::http2::Http2StreamClient;
    use posthaste_http::streams::http2::hpack::FieldPlan;
    use posthaste_http::streams::{OpenError, StreamRequest};

    let mut catalogue = FieldCatalogue::default();
    let field = catalogue.variable(b"x").unwrap();
    let mut client = Http2StreamClient::new(std::sync::Arc::new(FieldPlan::new(&catalogue)));
    let request = StreamRequest {
        fields: &[RequestField::Variable(field, b"a\r\nb: c")],
        ..StreamRequest::default()
    };
    assert_eq!(client.open(1, &request), Err(OpenError::InvalidValue));
    assert!(client.is_idle());
}

#[test]
fn our_windows_open_again_at_half() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    exchange.discard_output();
    exchange.receive(&ok(stream)).unwrap();
    let content = vec![0; 16_384];
    let mut granted = Vec::new();
    for _ in 0..3 * 1024 {
        exchange.receive(&data(stream, 0, &content)).unwrap();
        exchange.events.0.clear();
        granted.extend(exchange.frames());
    }
    // 48 MiB: a grant of the stream after each 8 MiB, none of the connection.
    let streams: Vec<u32> = granted.iter().map(|(head, _)| head.stream).collect();
    assert_eq!(streams, [stream; 5]);
    assert!(
        granted
            .iter()
            .all(|(head, _)| head.kind == kind::WINDOW_UPDATE)
    );
    assert_eq!(exchange.client.counters().windows_exhausted, 0);
}

#[test]
fn an_exhausted_window_of_ours_is_counted() {
    let mut exchange = Exchange::new();
    let stream = exchange.open(1).number();
    exchange.receive(&ok(stream)).unwrap();
    let content = vec![0; 16_384];
    // The server stops at the initial window of 16 MiB and 4093 bytes.
    for _ in 0..1024 {
        exchange.receive(&data(stream, 0, &content)).unwrap();
    }
    exchange
        .receive(&data(stream, 0, &content[..4_093]))
        .unwrap();
    assert_eq!(exchange.client.counters().windows_exhausted, 1);
}

#[test]
fn padding_counts_in_the_window_of_the_connection() {
    let mut exchange = Exchange::new();
    let streams = [exchange.open(1), exchange.open(2)].map(|stream| stream.number());
    exchange.receive(&ok(streams[0])).unwrap();
    exchange.discard_output();
    let mut padded = vec![255];
    padded.resize(256, 0);
    let whole = frame(kind::DATA, flag::PADDED, streams[0], &padded);
    let frames_of_half = (8 << 20) / padded.len() + 8;
    for _ in 0..frames_of_half {
        exchange.receive(&whole).unwrap();
    }
    assert_eq!(exchange.kinds(), [kind::WINDOW_UPDATE]);
}

//! CPU time of the client per small fixed request and its reply, with 32 streams on one connection.
//!
//! The replies are made before the measurement: `:status`, four indexed fields and 1 kB of content. Run it as
//! `cargo run --profile dist -p posthaste-http --features streams --example request_cost`, or below `valgrind --tool=callgrind` for instructions: the
//! argument is the number of requests, so that two runs with different numbers give the cost of one.

use std::sync::Arc;
use std::time::Instant;

use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http2::Http2StreamClient;
use posthaste_http::streams::http2::frame::{FrameHead, flag, kind};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::{EventSink, StreamEnd, StreamRequest};

const STREAMS: u32 = 32;
const CONTENT: usize = 1024;

/// Counts replies as a load generator does, without a histogram.
#[derive(Default)]
struct Tally {
    ok: u64,
    fields: usize,
    bytes: usize,
}

impl EventSink for Tally {
    fn head(&mut self, _: u32, status: u16) {
        self.ok += u64::from(status == 200);
    }

    fn field(&mut self, _: u32, name: &[u8], value: &[u8]) {
        self.fields += name.len() + value.len();
    }

    fn body(&mut self, _: u32, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn end(&mut self, _: u32, end: StreamEnd) {
        assert_eq!(end, StreamEnd::Complete);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    [&head.bytes(), payload].concat()
}

/// The reply that fills the table, and the later one: all fields indexed.
fn replies() -> (Vec<u8>, Vec<u8>) {
    let mut first = vec![0x88];
    for (index, value) in [
        (0x5f, "text/html"),
        (0x5c, "1024"),
        (0x61, "Thu, 26 Nov 2026 10:00:00 GMT"),
        (0x76, "nghttpd nghttp2/1.52.0"),
    ] {
        first.extend_from_slice(&[index, value.len() as u8]);
        first.extend_from_slice(value.as_bytes());
    }
    let content = frame(kind::DATA, flag::END_STREAM, 1, &[b'x'; CONTENT]);
    let reply = |block: &[u8]| {
        [
            frame(kind::HEADERS, flag::END_HEADERS, 1, block),
            content.clone(),
        ]
        .concat()
    };
    (reply(&first), reply(b"\x88\xc1\xc0\xbf\xbe"))
}

/// Writes the stream identifier into both frames of a reply.
fn address(reply: &mut [u8], stream: u32) {
    reply[5..9].copy_from_slice(&stream.to_be_bytes());
    let data = reply.len() - CONTENT - 4;
    reply[data..data + 4].copy_from_slice(&stream.to_be_bytes());
}

fn main() {
    let requests: u32 = std::env::args()
        .nth(1)
        .map_or(3_200_000, |count| count.parse().expect("a number"));
    let mut catalogue = FieldCatalogue::default();
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "127.0.0.1:8080"),
        (":path", "/books/by-isbn?isbn=3161484100"),
        ("user-agent", "posthaste/0.1.0"),
        ("accept", "*/*"),
    ];
    let fields = fields.map(|(name, value)| {
        let field = catalogue.constant(name.as_bytes(), value.as_bytes());
        RequestField::Constant(field.expect("a valid field"))
    });
    let request = StreamRequest {
        fields: &fields,
        ..StreamRequest::default()
    };
    let mut client = Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
    let mut tally = Tally::default();
    let settings = frame(kind::SETTINGS, 0, 0, b"");
    client.receive(&settings, &mut tally).expect("valid");
    let (mut first, later) = replies();
    let stream = client.open(0, &request).expect("a free stream").number();
    address(&mut first, stream);
    client.receive(&first, &mut tally).expect("valid");
    client.sent(client.output().len());

    let mut bytes = later.repeat(STREAMS as usize);
    let (mut stream, mut sent) = (3, 0);
    let start = Instant::now();
    for _ in 0..requests / STREAMS {
        for token in 0..STREAMS {
            client.open(token, &request).expect("a free stream");
        }
        sent += client.output().len();
        client.sent(client.output().len());
        for reply in bytes.chunks_exact_mut(later.len()) {
            address(reply, stream);
            stream += 2;
        }
        client.receive(&bytes, &mut tally).expect("valid");
    }
    let elapsed = start.elapsed();
    let completed = u64::from(requests / STREAMS * STREAMS);
    assert_eq!(tally.ok, completed + 1);
    println!(
        "{:.0} ns per request",
        elapsed.as_nanos() as f64 / completed as f64
    );
    println!(
        "{:.1} bytes sent per request, frame header included",
        sent as f64 / completed as f64
    );
    println!(
        "{} bytes of fields, {} bytes of content",
        tally.fields, tally.bytes
    );
}

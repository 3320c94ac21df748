//! Memory: no allocation for a fixed request in steady state.
//!
//! The harness is custom: it runs the test on the only thread of the process. The thread of the standard harness
//! allocates while a test runs.

use std::alloc::System;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http2::Http2StreamClient;
use posthaste_http::streams::http2::frame::{FrameHead, flag, kind};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::http3;
use posthaste_http::streams::{EventSink, StreamEnd, StreamRequest};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// Counts allocations of the whole process.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Requests at once.
const STREAMS: u32 = 32;

/// Bytes of the content of a reply.
const CONTENT: usize = 1024;

fn main() -> ExitCode {
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        })
    };
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = vec![
        trial(
            "a_fixed_request_allocates_nothing",
            a_fixed_request_allocates_nothing,
        ),
        trial(
            "a_fixed_request_of_http3_allocates_nothing",
            a_fixed_request_of_http3_allocates_nothing,
        ),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn a_fixed_request_allocates_nothing() {
    let mut rounds = Rounds::new();
    for _ in 0..100 {
        rounds.run();
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..300 {
        rounds.run();
    }
    let change = region.change();
    assert_eq!(rounds.ended.replies, 400 * STREAMS);
    assert_eq!(rounds.ended.bytes, CONTENT * rounds.ended.replies as usize);
    assert_eq!(change.allocations + change.reallocations, 0);
}

fn a_fixed_request_of_http3_allocates_nothing() {
    let mut rounds = Http3Rounds::new();
    for _ in 0..100 {
        rounds.run();
    }
    let region = Region::new(ALLOCATOR);
    for _ in 0..300 {
        rounds.run();
    }
    let change = region.change();
    assert_eq!(rounds.ended.replies, 400 * STREAMS);
    assert_eq!(rounds.ended.bytes, CONTENT * rounds.ended.replies as usize);
    assert_eq!(change.allocations + change.reallocations, 0);
}

/// Rounds of requests on one connection of HTTP/3.
struct Http3Rounds {
    client: http3::Http3StreamClient,
    fields: Vec<RequestField<'static>>,
    reply: Vec<u8>,
    next_stream: u64,
    ended: Ended,
}

impl Http3Rounds {
    fn new() -> Self {
        let (catalogue, fields) = fixed_fields();
        let plan = http3::qpack::FieldPlan::new(&catalogue);
        let mut client = http3::Http3StreamClient::new(Arc::new(plan));
        client.permit_streams(u64::MAX);
        let control = http3::StreamId::new(3);
        let mut ended = Ended::default();
        client
            .receive(control, b"\x00\x04\x00", false, &mut ended)
            .unwrap();
        // :status 200 and a date of four bytes with a Huffman code, then DATA with a length of two bytes.
        let head = b"\x01\x08\x00\x00\xd9\x56\x83\x90\x69\x2f\x00\x44\x00";
        Self {
            client,
            fields,
            reply: [&head[..], &[b'x'; CONTENT]].concat(),
            next_stream: 0,
            ended,
        }
    }

    /// Sends a request on each stream and receives the replies.
    fn run(&mut self) {
        let request = StreamRequest {
            fields: &self.fields,
            ..StreamRequest::default()
        };
        for token in 0..STREAMS {
            self.client.open(token, &request).unwrap();
        }
        while let Some(action) = self.client.output() {
            if let http3::OutputAction::Write { stream, bytes, .. } = action {
                let count = bytes.len();
                self.client.sent(stream, count);
            }
        }
        // Cut inside a frame header, a field section and content. All replies arrive at once.
        for piece in self.reply.chunks(5) {
            for number in 0..u64::from(STREAMS) {
                let stream = http3::StreamId::new(self.next_stream + 4 * number);
                let received = self.client.receive(stream, piece, false, &mut self.ended);
                received.unwrap();
            }
        }
        for _ in 0..STREAMS {
            let stream = http3::StreamId::new(self.next_stream);
            self.next_stream += 4;
            let received = self.client.receive(stream, b"", true, &mut self.ended);
            received.unwrap();
        }
    }
}

/// The fields of a request without a body.
fn fixed_fields() -> (FieldCatalogue, Vec<RequestField<'static>>) {
    let mut catalogue = FieldCatalogue::default();
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a"),
        (":path", "/"),
    ];
    let fields = fields.map(|(name, value)| {
        let field = catalogue.constant(name.as_bytes(), value.as_bytes());
        RequestField::Constant(field.unwrap())
    });
    (catalogue, fields.to_vec())
}

/// Rounds of requests on one connection.
struct Rounds {
    client: Http2StreamClient,
    fields: Vec<RequestField<'static>>,
    /// The replies of a round. The streams' identifiers are written anew for each round.
    replies: Vec<u8>,
    next_stream: u32,
    ended: Ended,
}

impl Rounds {
    fn new() -> Self {
        let (catalogue, fields) = fixed_fields();
        let mut client = Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
        let settings = frame(kind::SETTINGS, 0, &[]);
        client.receive(&settings, &mut Ended::default()).unwrap();
        // :status 200 and a date of four bytes that enters the table.
        let block = b"\x88\x61\x04date";
        let reply = [
            frame(kind::HEADERS, flag::END_HEADERS, block),
            frame(kind::DATA, flag::END_STREAM, &[b'x'; CONTENT]),
        ];
        Self {
            client,
            fields,
            replies: reply.concat().repeat(STREAMS as usize),
            next_stream: 1,
            ended: Ended::default(),
        }
    }

    /// Sends a request on each stream and receives the replies.
    fn run(&mut self) {
        let request = StreamRequest {
            fields: &self.fields,
            ..StreamRequest::default()
        };
        for token in 0..STREAMS {
            self.client.open(token, &request).unwrap();
        }
        self.client.sent(self.client.output().len());
        self.number_replies();
        // Cut inside a frame header, a field block and content.
        for piece in self.replies.chunks(1_537) {
            self.client.receive(piece, &mut self.ended).unwrap();
        }
    }

    fn number_replies(&mut self) {
        let length = self.replies.len() / STREAMS as usize;
        for reply in self.replies.chunks_mut(length) {
            let stream = self.next_stream.to_be_bytes();
            reply[5..9].copy_from_slice(&stream);
            let data = length - CONTENT - 4;
            reply[data..data + 4].copy_from_slice(&stream);
            self.next_stream += 2;
        }
    }
}

#[derive(Default)]
struct Ended {
    replies: u32,
    bytes: usize,
}

impl EventSink for Ended {
    fn head(&mut self, _: u32, status: u16) {
        assert_eq!(status, 200);
    }

    fn body(&mut self, _: u32, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn end(&mut self, _: u32, end: StreamEnd) {
        assert_eq!(end, StreamEnd::Complete);
        self.replies += 1;
    }
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead {
        length: payload.len() as u32,
        kind,
        flags,
        stream: 0,
    };
    [&head.bytes(), payload].concat()
}

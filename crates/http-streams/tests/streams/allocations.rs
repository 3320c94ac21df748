//! Memory: no allocation for a fixed request in steady state.

use std::alloc::System;
use std::process::Command;

use posthaste_http_streams::http2::frame::{flag, kind};
use posthaste_http_streams::http2::{EventSink, StreamEnd};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::support::{Exchange, frame};

/// Counts allocations of the whole process.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STREAMS: u32 = 32;

/// Printed with the number of allocations.
const ALLOCATIONS: &str = "allocations: ";

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

/// Writes the replies to streams from `first` on. Each has a new date, which enters the table.
fn replies(bytes: &mut [u8], round: u32) {
    let first = 1 + 2 * STREAMS * round;
    let length = bytes.len() / STREAMS as usize;
    for (stream, reply) in (first..).step_by(2).zip(bytes.chunks_mut(length)) {
        reply[5..9].copy_from_slice(&stream.to_be_bytes());
        let data = length - 1024 - 4;
        reply[data..data + 4].copy_from_slice(&stream.to_be_bytes());
    }
}

fn allocations() -> usize {
    let mut exchange = Exchange::new();
    let mut ended = Ended::default();
    // :status 200 and a date of four bytes that enters the table.
    let block = b"\x88\x61\x04date";
    let reply = [
        frame(kind::HEADERS, flag::END_HEADERS, 1, block),
        frame(kind::DATA, flag::END_STREAM, 1, &[b'x'; 1024]),
    ];
    let mut bytes = reply.concat().repeat(STREAMS as usize);
    let mut round = |exchange: &mut Exchange, number: u32| {
        for token in 0..STREAMS {
            exchange.open(token);
        }
        exchange.discard_output();
        replies(&mut bytes, number);
        // Cut inside a frame header, a field block and content.
        for piece in bytes.chunks(1_537) {
            exchange.client.receive(piece, &mut ended).unwrap();
        }
    };
    for number in 0..100 {
        round(&mut exchange, number);
    }
    let region = Region::new(ALLOCATOR);
    for number in 100..400 {
        round(&mut exchange, number);
    }
    let change = region.change();
    assert_eq!(ended.replies, 400 * STREAMS);
    assert_eq!(ended.bytes, 1024 * ended.replies as usize);
    change.allocations + change.reallocations
}

#[test]
#[ignore = "needs a process of its own: a_fixed_request_allocates_nothing runs it"]
fn count_in_a_process() {
    println!("\n{ALLOCATIONS}{}", allocations());
}

#[test]
fn a_fixed_request_allocates_nothing() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("allocations::count_in_a_process")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix(ALLOCATIONS));
    assert_eq!(count, Some("0"), "{text}");
}

//! Buffers for the bytes of a connection: written bytes until they are acknowledged, and received bytes out of order.
//!
//! An [`Endpoint`](crate::Endpoint) counts in offsets and holds no bytes. Callers with real bytes keep a [`SendBuffer`]
//! and a [`Reassembly`] and update them as the endpoint reports. The endpoint decides which data is accepted. This
//! module ensures that an accepted byte never changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::Offset;

/// Offset of the first byte of data. The SYN has offset 0.
const FIRST: Offset = 1;

/// Bytes written and not yet acknowledged, by offset.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    /// Offset of the first byte held.
    start: Offset,
    bytes: VecDeque<u8>,
}

impl Default for SendBuffer {
    fn default() -> Self {
        Self {
            start: FIRST,
            bytes: VecDeque::new(),
        }
    }
}

impl SendBuffer {
    /// Appends bytes written by the application, as many as the endpoint accepted.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Range of the offsets held.
    pub fn range(&self) -> Range<Offset> {
        self.start..self.start + self.bytes.len() as Offset
    }

    /// Returns the bytes of one segment, in at most two pieces. None if some are not held.
    pub fn get(&self, range: Range<Offset>) -> Option<[&[u8]; 2]> {
        let held = self.range();
        if range.start < held.start || range.end > held.end || range.start > range.end {
            return None;
        }
        Some(pieces(
            &self.bytes,
            (range.start - held.start) as usize..(range.end - held.start) as usize,
        ))
    }

    /// Frees all bytes before `offset`, after their acknowledgement.
    pub fn free(&mut self, offset: Offset) {
        let range = self.range();
        let offset = offset.clamp(range.start, range.end);
        self.bytes.drain(..(offset - range.start) as usize);
        self.start = offset;
    }
}

/// Received bytes, in order and beyond holes, up to a bound.
#[derive(Clone, Debug)]
pub struct Reassembly {
    /// Offset of the first byte that the application has not read.
    start: Offset,
    /// Bytes from `start` on. Holes contain zeros and are never returned.
    bytes: VecDeque<u8>,
    /// Received ranges, by start and end: disjoint and never empty.
    come: BTreeMap<Offset, Offset>,
    limit: usize,
}

impl Reassembly {
    /// Creates a buffer of at most `limit` bytes from the first unread one on: the receive buffer of the profile.
    pub fn new(limit: usize) -> Self {
        Self {
            start: FIRST,
            bytes: VecDeque::new(),
            come: BTreeMap::new(),
            limit,
        }
    }

    /// Stores the data that begins at `at`. Bytes received before keep their value, bytes already read are ignored, and
    /// bytes beyond the bound are dropped. Returns the number of new bytes.
    pub fn put(&mut self, at: Offset, data: &[u8]) -> usize {
        let bound = self.start + self.limit as Offset;
        let end = at.saturating_add(data.len() as Offset).min(bound);
        let mut from = at.max(self.start);
        let mut new = 0;
        while from < end {
            let (covered, hole) = self.hole(from, end);
            from = covered;
            if from >= end {
                break;
            }
            self.fill(
                from,
                &data[(from - at) as usize..(hole.min(end) - at) as usize],
            );
            new += (hole.min(end) - from) as usize;
            from = hole.min(end);
        }
        self.assert_invariants();
        new
    }

    /// Panics if received ranges touch, overlap or lie outside the buffer. Checked in debug builds.
    fn assert_invariants(&self) {
        if cfg!(debug_assertions) {
            assert!(
                self.bytes.len() <= self.limit,
                "a receive buffer exceeds its limit"
            );
            let end = self.start + self.bytes.len() as Offset;
            let mut before = None;
            for (&start, &until) in &self.come {
                assert!(
                    start < until,
                    "an empty range at {start} counts as received"
                );
                assert!(
                    before < Some(start),
                    "received ranges touch or overlap at {start}"
                );
                before = Some(until);
            }
            assert!(before <= Some(end), "received bytes lie beyond the buffer");
            let first = self.come.keys().next();
            assert!(
                first.is_none_or(|first| *first >= self.start),
                "bytes before the buffer count as received"
            );
        }
    }

    /// Returns the start and end of the first hole from `from` on.
    fn hole(&self, from: Offset, end: Offset) -> (Offset, Offset) {
        let before = self.come.range(..=from).next_back();
        let from = before.map_or(from, |(_, &covered)| covered.max(from));
        let next = self.come.range(from..).next();
        (from, next.map_or(end, |(&start, _)| start))
    }

    /// Writes into a hole, and joins adjacent ranges.
    fn fill(&mut self, at: Offset, data: &[u8]) {
        let index = (at - self.start) as usize;
        let needed = index + data.len();
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let (first, second) = self.bytes.as_mut_slices();
        let cut = first.len().saturating_sub(index).min(data.len());
        if cut > 0 {
            first[index..index + cut].copy_from_slice(&data[..cut]);
        }
        if cut < data.len() {
            let index = index + cut - first.len();
            second[index..index + data.len() - cut].copy_from_slice(&data[cut..]);
        }
        let (mut start, mut end) = (at, at + data.len() as Offset);
        if let Some((&before, &touching)) = self.come.range(..at).next_back()
            && touching == at
        {
            start = before;
        }
        if let Some(beyond) = self.come.remove(&end) {
            end = beyond;
        }
        self.come.insert(start, end);
    }

    /// Offset of the first missing byte. Everything before it can be read.
    pub fn next(&self) -> Offset {
        self.come.get(&self.start).copied().unwrap_or(self.start)
    }

    /// The readable bytes, in at most two pieces.
    pub fn readable(&self) -> [&[u8]; 2] {
        pieces(&self.bytes, 0..(self.next() - self.start) as usize)
    }

    /// Removes the first `count` bytes after a read, at most the readable ones.
    pub fn consume(&mut self, count: usize) {
        let end = self.next();
        let start = (self.start + count as Offset).min(end);
        self.bytes.drain(..(start - self.start) as usize);
        self.come.remove(&self.start);
        self.start = start;
        if start < end {
            self.come.insert(start, end);
        }
        self.assert_invariants();
    }
}

/// A part of a ring buffer, as its two contiguous pieces.
fn pieces(bytes: &VecDeque<u8>, range: Range<usize>) -> [&[u8]; 2] {
    let (first, second) = bytes.as_slices();
    let cut = |index: usize| (index.min(first.len()), index.saturating_sub(first.len()));
    let ((a, b), (c, d)) = (cut(range.start), cut(range.end));
    [&first[a..c], &second[b..d]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The byte at an offset in every test. Adjacent bytes differ.
    fn byte(offset: Offset) -> u8 {
        (offset % 251) as u8
    }

    fn stretch(range: Range<Offset>) -> Vec<u8> {
        range.map(byte).collect()
    }

    #[test]
    fn the_first_copy_of_received_bytes_stays() {
        let mut reassembly = Reassembly::new(10);
        assert_eq!(reassembly.put(3, b"cd"), 2);
        assert_eq!(reassembly.put(1, b"abXXef"), 4);
        assert_eq!(reassembly.readable().concat(), b"abcdef");
        assert_eq!(reassembly.put(1, b"ZZZZZZ"), 0);
        reassembly.consume(4);
        assert_eq!(reassembly.put(2, b"YYYYYghijklmnopqrst"), 8);
        assert_eq!(reassembly.readable().concat(), b"efghijklmn");
    }

    #[test]
    fn ranges_outside_the_buffer_are_not_returned() {
        let mut buffer = SendBuffer::default();
        buffer.append(b"hello");
        assert_eq!(
            buffer.get(1..6).map(|pieces| pieces.concat()),
            Some(b"hello".to_vec())
        );
        assert_eq!(buffer.get(1..7), None);
        buffer.free(3);
        assert_eq!(buffer.get(2..4), None);
        assert_eq!(
            buffer.get(3..4).map(|pieces| pieces.concat()),
            Some(b"l".to_vec())
        );
        buffer.free(2);
        buffer.free(Offset::MAX);
        assert_eq!(buffer.range(), 6..6);
    }

    proptest! {
        /// For any order, overlaps and reads: the bytes read are the stream, and no byte is kept beyond the bound.
        #[test]
        fn a_stream_comes_together(
            limit in 1usize..300,
            steps in vec((0u64..900, 0u64..120, 0usize..200), 1..200),
        ) {
            let mut reassembly = Reassembly::new(limit);
            let mut read = Vec::new();
            let mut held = 0;
            for (start, length, count) in steps {
                held += reassembly.put(start, &stretch(start..start + length));
                prop_assert!(reassembly.bytes.len() <= limit);
                let readable = reassembly.readable().concat();
                let count = count.min(readable.len());
                read.extend(&readable[..count]);
                reassembly.consume(count);
                held -= count;
                let covered: u64 = reassembly.come.iter().map(|(start, end)| end - start).sum();
                prop_assert_eq!(covered as usize, held);
                let apart = reassembly.come.iter().zip(reassembly.come.iter().skip(1));
                prop_assert!(apart.into_iter().all(|(a, b)| a.1 < b.0));
            }
            read.extend(reassembly.readable().concat());
            prop_assert_eq!(&read, &stretch(FIRST..FIRST + read.len() as u64));
        }

        /// Bytes keep their offsets until they are freed.
        #[test]
        fn written_bytes_can_be_sent_again_until_freed(
            steps in vec((0u64..2000, 0u64..1500, 0u64..2000), 1..50),
        ) {
            let mut buffer = SendBuffer::default();
            for (written, freed, requested) in steps {
                let end = buffer.range().end;
                buffer.append(&stretch(end..end + written));
                buffer.free(buffer.range().start + freed);
                let held = buffer.range();
                let start = held.start + requested.min(held.end - held.start);
                let got = buffer.get(start..held.end).map(|pieces| pieces.concat());
                prop_assert_eq!(got, Some(stretch(start..held.end)));
            }
        }
    }
}

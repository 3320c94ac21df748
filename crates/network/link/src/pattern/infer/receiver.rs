//! Losses and reordering seen at the receiver's end: holes in the received data.

use std::collections::BTreeMap;

use posthaste_units::{Instant, Span};

use super::{Findings, ObservedPacket, ObservedSegment, first, unwrapped};
use crate::Direction;
use crate::pattern::ENTRIES;

/// Maximum time of a hole closed by reordering, if no round trip was seen.
const NO_ROUND_TRIP: Span = Span::from_millis(3);
/// Maximum number of packets in one hole. Beyond it, the sequence numbers jumped.
const HOLE: u64 = 65_536;
/// Maximum number of packets in all holes together: no pattern holds more entries.
const HOLES: u64 = ENTRIES as u64;

/// Reads one direction of a capture made at its receiver.
///
/// - If a segment arrives beyond the next expected byte, the bytes between are a hole. It counts as the number of
///   segments of the largest size so far that would fill it, at the positions just before the segment that showed it.
/// - A segment that fills it sooner than the connection's smallest round trip (3 ms if none was seen) was overtaken: no
///   sender could have learnt of the hole by then. A later one is a retransmission, and the packet at the hole was
///   lost. Without times, all are retransmissions.
/// - A hole that the receiver acknowledges although nothing filled it was missed by the capture.
///
/// It cannot see lost acknowledgements, lost retransmissions, lost packets at the end of the data that were
/// retransmitted unchanged, or any loss outside TCP.
#[derive(Debug)]
pub struct ReceiverCapture {
    direction: Direction,
    connections: BTreeMap<u64, ReceiverConnection>,
    position: u64,
    arrived: u64,
    /// Packets in all holes so far.
    missed: u64,
    findings: Findings,
}

#[derive(Debug, Default)]
struct ReceiverConnection {
    /// End of the last byte that arrived.
    expected: Option<u64>,
    largest: u32,
    /// Missing packets by their start. They do not overlap.
    missing: BTreeMap<u64, MissingPacket>,
    /// End and time of a segment in the opposite direction, to measure the round trip.
    timed: Option<(u64, Option<Instant>)>,
    sent: Option<u64>,
    round_trip: Option<Span>,
}

/// A packet that should have arrived.
#[derive(Debug)]
struct MissingPacket {
    end: u64,
    position: u64,
    noticed: Option<Instant>,
    /// Packets that had arrived when the hole was noticed.
    arrived: u64,
}

impl ReceiverCapture {
    /// A reader of packets in `direction`, captured at their receiver.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            connections: BTreeMap::new(),
            position: 0,
            arrived: 0,
            missed: 0,
            findings: Findings::default(),
        }
    }

    /// Adds the next packet of the capture, of either direction.
    pub fn push(&mut self, seen: &ObservedPacket) {
        let connection = self.connections.entry(seen.connection).or_default();
        if seen.direction != self.direction {
            if let Some(segment) = &seen.segment {
                self.findings.uncaptured += connection.send(seen.at, segment);
            }
            return;
        }
        let before = self.arrived;
        self.arrived += 1;
        let Some(segment) = &seen.segment else {
            self.position += 1;
            return;
        };
        connection.acknowledged(seen.at, segment);
        let room = HOLE.min(HOLES - self.missed);
        match connection.arrive(seen.at, segment, self.position, before, room) {
            SegmentArrival::Next => self.position += 1,
            SegmentArrival::Behind(missing) => {
                self.missed += missing;
                self.position += missing + 1;
            }
            SegmentArrival::Jump => {
                self.findings.jumps += 1;
                self.position += 1;
            }
            SegmentArrival::Overtaken(position, by) => {
                self.findings.overtaken.push((position, by));
            }
            SegmentArrival::Again(lost) => {
                self.findings.lost.extend(lost);
                self.position += 1;
            }
        }
    }

    /// Returns the findings. Holes that never closed are losses.
    pub fn finish(mut self) -> Findings {
        let open = self.connections.into_values();
        let open = open.flat_map(|connection| connection.missing.into_values());
        self.findings
            .lost
            .extend(open.map(|missing| missing.position));
        self.findings.lost.sort_unstable();
        self.findings.overtaken.sort_unstable();
        debug_assert!(
            self.findings
                .lost
                .last()
                .is_none_or(|last| *last <= self.position),
            "a packet beyond the last position is lost"
        );
        self.findings.packets = self.position;
        self.findings
    }
}

/// Meaning of a segment's arrival.
enum SegmentArrival {
    /// The next segment, or nothing new.
    Next,
    /// This number of packets is missing before it.
    Behind(u64),
    /// Its number is unrelated to those before.
    Jump,
    /// It was sent at this position, and this number of later ones came first.
    Overtaken(u64, u32),
    /// It retransmits the lost packets at these positions.
    Again(Vec<u64>),
}

impl ReceiverConnection {
    /// Handles a segment at this position, after this number of arrivals. A hole before it may hold up to `room`
    /// packets.
    fn arrive(
        &mut self,
        at: Option<Instant>,
        segment: &ObservedSegment,
        position: u64,
        arrived: u64,
        room: u64,
    ) -> SegmentArrival {
        if segment.length == 0 {
            return SegmentArrival::Next;
        }
        self.largest = self.largest.max(segment.length);
        let expected = self.expected.unwrap_or_else(|| first(segment.sequence));
        let start = unwrapped(expected, segment.sequence);
        let end = start + u64::from(segment.length);
        if start > expected {
            let size = u64::from(self.largest);
            let packets = (start - expected).div_ceil(size);
            self.expected = Some(end);
            if packets > room {
                return SegmentArrival::Jump;
            }
            for number in 0..packets {
                let from = expected + number * size;
                let missing = MissingPacket {
                    end: start.min(from + size),
                    position: position + number + 1,
                    noticed: at,
                    arrived,
                };
                self.missing.insert(from, missing);
            }
            return SegmentArrival::Behind(packets);
        }
        self.expected = Some(expected.max(end));
        self.fill(at, start, end, arrived)
    }

    /// Closes the holes that `start..end` overlaps.
    fn fill(&mut self, at: Option<Instant>, start: u64, end: u64, arrived: u64) -> SegmentArrival {
        let reached = self.missing.range(..end).rev();
        let mut reached: Vec<u64> = reached
            .take_while(|(_, missing)| missing.end > start)
            .map(|(from, _)| *from)
            .collect();
        reached.reverse();
        let mut filled = reached
            .iter()
            .filter_map(|from| self.missing.remove(from))
            .peekable();
        let Some(missing) = filled.peek() else {
            return SegmentArrival::Next;
        };
        let patience = self.round_trip.unwrap_or(NO_ROUND_TRIP);
        // Times of a capture can decrease. Without times, a hole closed later counts as a loss.
        let waited = at.zip(missing.noticed);
        let waited = waited.map(|(at, noticed)| at.saturating_since(noticed));
        if reached.len() == 1 && waited.is_some_and(|waited| waited < patience) {
            let later = arrived - missing.arrived;
            return SegmentArrival::Overtaken(
                missing.position,
                u32::try_from(later).unwrap_or(u32::MAX),
            );
        }
        SegmentArrival::Again(filled.map(|missing| missing.position).collect())
    }

    /// Handles a segment in the opposite direction: it starts a round trip, and the data that it acknowledges has
    /// arrived. Returns the number of missing packets among that data.
    fn send(&mut self, at: Option<Instant>, segment: &ObservedSegment) -> u64 {
        let sent = self.sent.unwrap_or_else(|| first(segment.sequence));
        let end = unwrapped(sent, segment.sequence) + u64::from(segment.length);
        if segment.length > 0 && end > sent && self.timed.is_none() {
            self.timed = Some((end, at));
        }
        self.sent = Some(sent.max(end));
        let (Some(expected), Some(number)) = (self.expected, segment.acknowledges) else {
            return 0;
        };
        let acknowledged = unwrapped(expected, number);
        let before = self.missing.len();
        while let Some(first) = self.missing.first_entry()
            && first.get().end <= acknowledged
        {
            first.remove();
        }
        (before - self.missing.len()) as u64
    }

    /// Ends a round trip if the arriving segment acknowledges its end.
    fn acknowledged(&mut self, at: Option<Instant>, segment: &ObservedSegment) {
        let (Some((end, sent)), Some(number)) = (self.timed, segment.acknowledges) else {
            return;
        };
        if unwrapped(end, number) >= end {
            let round_trip = at.zip(sent).map(|(at, sent)| at.saturating_since(sent));
            self.round_trip = self.round_trip.into_iter().chain(round_trip).min();
            self.timed = None;
        }
    }
}

//! One half of a connection: an endpoint with its data, read from packets and written to packets.

use std::sync::Arc;

use posthaste_tcp::stream::{Reassembly, SendBuffer};
use posthaste_tcp::wire::{self, ReceivedPacket, SegmentRoute};
use posthaste_tcp::{Endpoint, Profile, Segment, TcpState, unwrap};
use posthaste_units::Instant;

/// Offset of the first byte of data.
const FIRST: u64 = 1;
/// A window is a multiple of its scale, so slightly more than the buffer may have been offered: less than the unit of
/// the largest scale (RFC 7323, section 2.3).
const ROUNDING: u64 = 1 << 14;

/// An endpoint with its data.
#[derive(Debug)]
pub(super) struct SpliceHalf {
    pub(super) endpoint: Endpoint,
    /// From this end to the peer.
    route: SegmentRoute,
    pub(super) send: SendBuffer,
    pub(super) come: Reassembly,
    /// True once all data has been written.
    pub(super) closed: bool,
}

impl SpliceHalf {
    pub(super) fn connect(
        profile: &Arc<Profile>,
        route: SegmentRoute,
        isn: u32,
        now: Instant,
    ) -> Self {
        Self::with(Endpoint::connect(profile, isn, now), route)
    }

    pub(super) fn listen(profile: &Arc<Profile>, route: SegmentRoute, isn: u32) -> Self {
        Self::with(Endpoint::listen(profile, isn), route)
    }

    fn with(mut endpoint: Endpoint, route: SegmentRoute) -> Self {
        endpoint.set_no_delay(true);
        let limit = endpoint.profile().receive_buffer + ROUNDING;
        Self {
            endpoint,
            route,
            send: SendBuffer::default(),
            come: Reassembly::new(limit as usize),
            closed: false,
        }
    }

    /// Processes a segment with its data.
    pub(super) fn push(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        let taken = self.endpoint.push(now, segment);
        self.send.free(FIRST + self.endpoint.acknowledged());
        let (Some(taken), Some(isn)) = (taken, self.endpoint.peer_isn()) else {
            return;
        };
        debug_assert!(taken.start <= taken.end, "data ends before it begins");
        let first = segment.seq.wrapping_add(segment.syn.into());
        let start = unwrap(isn, first, taken.start);
        let skipped = start.and_then(|start| taken.start.checked_sub(start));
        let length = (taken.end - taken.start) as usize;
        let data = skipped.and_then(|skipped| payload.get(skipped as usize..));
        if let Some(data) = data {
            self.come.put(taken.start, &data[..length.min(data.len())]);
        }
    }

    /// The next packet to be sent now.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        let segment = self.endpoint.pop(now)?;
        let first = segment.seq.wrapping_add(segment.syn.into());
        let start = unwrap(self.endpoint.isn(), first, self.send.range().start);
        let payload = match segment.len {
            0 => Some([&[][..], &[][..]]),
            length => start.and_then(|start| self.send.get(start..start + u64::from(length))),
        };
        let payload = payload.expect("an endpoint sends what was written and not acknowledged");
        let mut packet = Vec::with_capacity(crate::MTU as usize);
        wire::write(&mut packet, &self.route, &segment, payload)
            .expect("a profile's segments fit a packet");
        Some(packet)
    }

    /// Copies readable data to the other half, as far as it has space, and then the end of the stream. Returns true if
    /// anything was copied.
    pub(super) fn move_to(&mut self, other: &mut Self, now: Instant) -> bool {
        let mut moved = false;
        loop {
            let [first, second] = self.come.readable();
            let piece = if first.is_empty() { second } else { first };
            let taken = other.endpoint.write(now, piece.len() as u64) as usize;
            if taken == 0 {
                break;
            }
            debug_assert!(taken <= piece.len(), "more was written than was readable");
            other.send.append(&piece[..taken]);
            self.come.consume(taken);
            self.endpoint.read(taken as u64);
            moved = true;
        }
        let ended = self.endpoint.peer_has_closed() && self.endpoint.readable() == 0;
        if ended && !other.closed {
            other.closed = true;
            other.endpoint.close();
            moved = true;
        }
        moved
    }

    /// True if only answers to late packets will be sent. Frees the buffers.
    pub(super) fn is_waiting_only(&mut self) -> bool {
        let over = matches!(
            self.endpoint.state(),
            TcpState::TimeWait | TcpState::Closed(_)
        );
        if over && self.endpoint.readable() == 0 {
            self.send = SendBuffer::default();
            self.come = Reassembly::new(0);
        }
        over
    }
}

/// The reset in answer to a packet without a connection (RFC 9293, section 3.10.7.1).
pub(super) fn reset(stray: &ReceivedPacket<'_>) -> Vec<u8> {
    let segment = stray.segment;
    let places = segment.len + u32::from(segment.syn) + u32::from(segment.fin);
    let segment = Segment {
        seq: segment.ack.unwrap_or_default(),
        ack: segment
            .ack
            .is_none()
            .then(|| segment.seq.wrapping_add(places)),
        rst: true,
        ..Segment::default()
    };
    let mut packet = Vec::new();
    wire::write(&mut packet, &stray.route.reverse(), &segment, [&[], &[]])
        .expect("a header without options fits a packet");
    packet
}

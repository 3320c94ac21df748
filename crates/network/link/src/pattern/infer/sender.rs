//! Losses seen at the sender's end: retransmissions.

use std::collections::BTreeMap;

use super::{Findings, ObservedPacket, ObservedSegment, first, unwrapped};
use crate::Direction;

/// Reads one direction of a capture made at its sender.
///
/// Each packet is in the capture, so positions are exact. A packet counts as lost if its bytes are sent again before
/// they were acknowledged; with several transmissions, each repeated one counts. A needless retransmission (a probe, a
/// short timer, a lost acknowledgement) looks the same. There may be too many losses, and losses of packets that are
/// never sent again do not show.
#[derive(Debug)]
pub struct SenderCapture {
    direction: Direction,
    connections: BTreeMap<u64, SenderConnection>,
    findings: Findings,
}

#[derive(Debug, Default)]
struct SenderConnection {
    /// End of the last byte sent.
    sent: Option<u64>,
    /// Unacknowledged packets by their start, with end and position. They do not overlap.
    open: BTreeMap<u64, (u64, u64)>,
}

impl SenderCapture {
    /// A reader of packets in `direction`, captured at their sender.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            connections: BTreeMap::new(),
            findings: Findings::default(),
        }
    }

    /// Adds the next packet of the capture, of either direction.
    pub fn push(&mut self, seen: &ObservedPacket) {
        let connection = self.connections.entry(seen.connection).or_default();
        if seen.direction != self.direction {
            if let Some(number) = seen.segment.and_then(|segment| segment.acknowledges) {
                connection.acknowledged(number);
            }
            return;
        }
        self.findings.packets += 1;
        if let Some(segment) = &seen.segment {
            let lost = connection.send(segment, self.findings.packets);
            self.findings.lost.extend(lost);
        }
    }

    /// Returns the findings.
    pub fn finish(mut self) -> Findings {
        self.findings.lost.sort_unstable();
        self.findings
    }
}

impl SenderConnection {
    /// Adds a packet. Returns the positions of the packets that it repeats.
    fn send(&mut self, segment: &ObservedSegment, position: u64) -> Vec<u64> {
        if segment.length == 0 {
            return Vec::new();
        }
        let sent = self.sent.unwrap_or_else(|| first(segment.sequence));
        let start = unwrapped(sent, segment.sequence);
        let end = start + u64::from(segment.length);
        self.sent = Some(sent.max(end));
        let again: Vec<u64> = self
            .open
            .range(..end)
            .rev()
            .take_while(|(_, (until, _))| *until > start)
            .map(|(from, _)| *from)
            .collect();
        let lost = again
            .iter()
            .filter_map(|from| self.open.remove(from))
            .map(|(_, position)| position)
            .collect();
        self.open.insert(start, (end, position));
        lost
    }

    fn acknowledged(&mut self, number: u32) {
        let Some(sent) = self.sent else { return };
        let acknowledged = unwrapped(sent, number);
        while let Some(first) = self.open.first_entry()
            && first.get().0 <= acknowledged
        {
            first.remove();
        }
    }
}

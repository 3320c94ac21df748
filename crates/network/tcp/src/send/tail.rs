//! Remedies for losses at the end of a flight: copies of the last segments, and their parity.

use posthaste_units::Instant;

use super::flight::Flight;
use super::flight::transmit::{Chunk, Repair};
use crate::profile::Recovery;
use crate::{EndpointCounters, Offset, Parity};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailRemedies {
    /// End of the data whose tail copies have been sent.
    pub(super) copied: Offset,
    /// Parity covers everything before this offset.
    pub(super) covered: Offset,
}

impl TailRemedies {
    /// Returns true if the rules have one of the remedies.
    pub(super) const fn are_enabled(rules: &Recovery) -> bool {
        rules.tail_copies > 0 || rules.tail_parity > 0
    }

    /// Sends the last segments again as soon as nothing else is left to send.
    pub(super) fn copy(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let copies = flight.rules.recovery.tail_copies as usize;
        let max = flight.sequence.max;
        if copies == 0 || flight.sequence.unsent() > 0 || self.copied >= max {
            return None;
        }
        let board = &flight.board;
        let first = board.len().saturating_sub(copies);
        let index = (first..board.len())
            .find(|index| board.get(*index).is_some_and(|sent| sent.end > self.copied))?;
        self.copied = board.get(index).map_or(max, |sent| sent.end);
        flight.send_again(now, index, Repair::Probe, counters)
    }

    /// Sends the parity of the last segments once, as soon as nothing else is left to send. Returns the covered range,
    /// and the payload in bytes.
    pub(super) fn parity(
        &mut self,
        flight: &Flight,
        counters: &mut EndpointCounters,
    ) -> Option<(Parity, u32)> {
        let rules = &flight.rules;
        let most = rules.recovery.tail_parity as usize;
        let max = flight.sequence.max;
        if most == 0 || !rules.agreed.parity || flight.sequence.unsent() > 0 || self.covered >= max
        {
            return None;
        }
        let tail = flight.board.iter().rev().take(most);
        let (start, len) =
            tail.take_while(|sent| sent.end > self.covered)
                .fold((max, 0), |(_, len), sent| {
                    let data = sent.end - sent.start - u64::from(sent.fin);
                    (sent.start, len.max(data))
                });
        self.covered = max;
        if len == 0 {
            return None;
        }
        counters.parities += 1;
        let parity = Parity {
            covered: (max - start) as u32,
            fin: flight.sequence.fin_sent(),
        };
        Some((parity, len as u32))
    }
}

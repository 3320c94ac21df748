//! Room in a queue that is taken until a time known beforehand.

use std::collections::VecDeque;

use posthaste_units::Instant;

/// Packets that each take room until a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    taken: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Slots {
    /// Gives all room back.
    pub(crate) fn clear(&mut self) {
        self.taken.clear();
        self.bytes = 0;
    }

    /// Takes room for one packet.
    #[inline]
    pub(crate) fn take(&mut self, until: Instant, bytes: u32) {
        match self.taken.back() {
            Some((last, _)) if *last > until => {
                let place = self.taken.partition_point(|(other, _)| *other <= until);
                self.taken.insert(place, (until, bytes));
            }
            _ => self.taken.push_back((until, bytes)),
        }
        self.bytes += u64::from(bytes);
    }

    /// Gives back the room whose time is over.
    #[inline]
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some(&(until, bytes)) = self.taken.front()
            && until <= now
        {
            self.taken.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    pub(crate) fn packets(&self) -> usize {
        self.taken.len()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

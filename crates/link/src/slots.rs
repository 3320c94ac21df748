//! Room in a queue that is taken until a time known beforehand.
//!
//! What is over counts until it is given back: whoever finds room without that need not look.

use std::collections::VecDeque;

use posthaste_units::Instant;

/// Memory for so many packets is there from the beginning.
const AT_FIRST: usize = 64;

/// Packets that each take room until a time.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    taken: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Slots {
    /// All room is free.
    pub(crate) fn new() -> Self {
        Self {
            taken: VecDeque::with_capacity(AT_FIRST),
            bytes: 0,
        }
    }

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
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some(&(until, bytes)) = self.taken.front()
            && until <= now
        {
            self.taken.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    /// Whether one packet more would take more memory.
    pub(crate) fn is_packed(&self) -> bool {
        self.taken.len() == self.taken.capacity()
    }

    pub(crate) fn packets(&self) -> usize {
        self.taken.len()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

//! Queue capacity that is occupied until a known time.
//!
//! Expired packets count until they are released. A caller that finds capacity without a release can skip it.

use std::collections::VecDeque;

use posthaste_units::Instant;

use crate::queueing::invariants;

/// Number of packets for which memory is allocated at the beginning.
const AT_FIRST: usize = 64;

/// Packets that each occupy capacity until a known time.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    taken: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Slots {
    /// An empty set.
    pub(crate) fn new() -> Self {
        Self {
            taken: VecDeque::with_capacity(AT_FIRST),
            bytes: 0,
        }
    }

    /// Releases all capacity.
    pub(crate) fn clear(&mut self) {
        self.taken.clear();
        self.bytes = 0;
    }

    /// Occupies capacity for one packet.
    #[inline]
    pub(crate) fn take(&mut self, until: Instant, bytes: u32) {
        match self.taken.back() {
            Some((last, _)) if *last > until => {
                let index = self.taken.partition_point(|(other, _)| *other <= until);
                self.taken.insert(index, (until, bytes));
            }
            _ => self.taken.push_back((until, bytes)),
        }
        self.bytes += u64::from(bytes);
    }

    /// Panics if the packets are out of order or their bytes do not add up. Checked in debug builds.
    fn assert_invariants(&self) {
        if invariants::are_checked(self.taken.len()) {
            let bytes = self.taken.iter().map(|(_, bytes)| u64::from(*bytes));
            let bytes = bytes.sum::<u64>();
            assert_eq!(
                self.bytes, bytes,
                "occupied bytes differ from those of the packets"
            );
            let times = self.taken.iter().map(|(until, _)| until);
            assert!(times.is_sorted(), "occupied capacity is out of order");
        }
    }

    /// Releases the capacity of expired packets.
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some(&(until, bytes)) = self.taken.front()
            && until <= now
        {
            self.taken.pop_front();
            self.bytes -= u64::from(bytes);
        }
        self.assert_invariants();
    }

    /// True if one more packet would need more memory.
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

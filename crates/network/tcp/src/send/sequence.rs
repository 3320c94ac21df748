//! Offsets of the sending half in its stream: the send sequence space of RFC 9293, section 3.3.1.

use crate::Offset;

#[derive(Clone, Copy, Debug)]
pub(crate) struct SendSequence {
    /// Everything before this offset is acknowledged.
    pub(crate) una: Offset,
    /// Next offset to send. BSD's timeout pulls it back.
    pub(super) next: Offset,
    /// End of the sequence numbers ever sent (exclusive).
    pub(crate) max: Offset,
    /// End of the written data (exclusive).
    pub(crate) written: Offset,
    /// A FIN follows the last byte.
    pub(crate) closing: bool,
    /// A probe of one byte beyond `max` has been sent.
    pub(super) probed: bool,
}

impl SendSequence {
    pub(super) const fn new() -> Self {
        Self {
            una: 0,
            next: 0,
            max: 0,
            written: 1,
            closing: false,
            probed: false,
        }
    }

    /// Starts after the SYN.
    pub(super) const fn open(&mut self) {
        (self.una, self.next, self.max) = (1, 1, 1);
    }

    /// End of the sequence numbers that the peer can have seen (exclusive).
    pub(crate) const fn shown(&self) -> Offset {
        self.max + self.probed as u64
    }

    pub(crate) const fn fin_sent(&self) -> bool {
        self.max > self.written
    }

    pub(crate) const fn fin_acknowledged(&self) -> bool {
        self.una > self.written
    }

    /// Sequence numbers written and never sent, including the FIN's.
    pub(super) const fn unsent(&self) -> u64 {
        let end = self.written + self.closing as u64;
        debug_assert!(self.max <= end, "more was sent than is written");
        end.saturating_sub(self.max)
    }

    /// Bytes of data written and never sent.
    pub(super) const fn unsent_data(&self) -> u64 {
        self.written.saturating_sub(self.max)
    }

    /// Returns true if everything sent is acknowledged.
    pub(super) const fn is_idle(&self) -> bool {
        self.una == self.max
    }

    /// Sequence numbers from `una` to `next`, as BSD counts the bytes in flight.
    pub(super) const fn up_to_next(&self) -> u64 {
        debug_assert!(self.next >= self.una, "the flight is negative");
        self.next.saturating_sub(self.una)
    }

    /// Panics if offsets are out of order.
    pub(super) fn assert_invariants(&self) {
        let Self { una, next, max, .. } = *self;
        assert!(
            una <= next,
            "offset {next} is sent next, and {una} is acknowledged"
        );
        assert!(
            next <= max,
            "offset {next} is sent next, and only {max} was reached"
        );
        let end = self.written + u64::from(self.closing);
        assert!(
            max <= end,
            "offset {max} was sent, and only {end} is written"
        );
    }
}

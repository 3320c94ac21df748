//! Step: marks ECN-capable packets beyond a threshold, as for DCTCP (RFC 8257, section 3.1). Others pass unchanged, and
//! arrivals at a full queue are dropped.

use posthaste_units::{Instant, Span};

use super::{Policy, QueueView};

/// Threshold of the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Marks a packet that finds at least this many in the queue, the one in transmission included.
    Packets(u32),
    /// Marks a packet that has waited at least this long when its transmission begins.
    Time(Span),
}

impl Policy for Step {
    fn marks_arrival(&self, packets: usize) -> bool {
        matches!(self, Self::Packets(threshold) if packets >= *threshold as usize)
    }

    fn before_sending(&mut self, now: Instant, queue: &mut dyn QueueView) {
        if let Self::Time(threshold) = *self
            && queue
                .first(now)
                .is_some_and(|(waited, _)| waited >= threshold)
        {
            queue.mark_first();
        }
    }
}

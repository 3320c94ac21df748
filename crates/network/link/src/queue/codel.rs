//! CoDel, controlled delay: RFC 8289, section 5, after its pseudocode and with its names.
//!
//! With ECN a capable packet is marked where the pseudocode drops it, and sent: the packet behind it is not looked at. As
//! in Linux's `codel_dequeue` (`include/net/codel_impl.h`), a mark counts in the control law like a drop.

use posthaste_units::{Instant, Span};

use super::{Policy, QueueView};
use crate::DropReason;

/// Bytes that may wait behind a packet before it can be dropped: one MTU (section 4.4).
const MAXPACKET: u64 = 1500;

/// The two constants of RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing delay of the queue (section 4.3).
    pub target: Span,
    /// Time for which the delay must stay above it: a long round-trip time of the path (section 4.2).
    pub interval: Span,
    /// Marks ECN-capable packets instead of dropping them (RFC 3168, section 5).
    pub ecn: bool,
}

impl Default for CoDel {
    /// 5 ms and 100 ms, without ECN.
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: false,
        }
    }
}

impl CoDel {
    pub(super) fn start(self) -> CoDelState {
        CoDelState {
            codel: self,
            first_above_time: None,
            drop_next: Instant::ORIGIN,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    /// Time of the next drop: sooner with every drop, by the square root of their number.
    fn control_law(self, time: Instant, count: u32) -> Instant {
        debug_assert!(count > 0, "CoDel's control law needs a drop");
        time + Span::from_secs_f64(self.interval.as_secs_f64() / f64::from(count).sqrt())
    }
}

pub(super) struct CoDelState {
    codel: CoDel,
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl CoDelState {
    /// Marks the first packet, if it may be, or else drops it. Returns true if it was dropped.
    fn drop_or_mark(&self, now: Instant, queue: &mut dyn QueueView) -> bool {
        let is_marked = self.codel.ecn && queue.mark_first();
        if !is_marked {
            queue.drop_first(now, DropReason::CoDel);
        }
        !is_marked
    }

    /// The RFC's `dodequeue`, which here inspects the first packet without removing it.
    fn ok_to_drop(&mut self, now: Instant, queue: &dyn QueueView) -> bool {
        let above = queue
            .first(now)
            .is_some_and(|(waited, behind)| waited >= self.codel.target && behind > MAXPACKET);
        if !above {
            self.first_above_time = None;
            return false;
        }
        now >= *self
            .first_above_time
            .get_or_insert(now + self.codel.interval)
    }
}

impl Policy for CoDelState {
    fn before_sending(&mut self, now: Instant, queue: &mut dyn QueueView) {
        let ok_to_drop = self.ok_to_drop(now, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                let is_dropped = self.drop_or_mark(now, queue);
                self.count += 1;
                if !is_dropped {
                    self.drop_next = self.codel.control_law(self.drop_next, self.count);
                    return;
                }
                if self.ok_to_drop(now, queue) {
                    self.drop_next = self.codel.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if self.drop_or_mark(now, queue) {
                self.ok_to_drop(now, queue);
            }
            self.dropping = true;
            // Dropping has resumed soon: continue at the rate that controlled the queue.
            debug_assert!(self.count >= self.lastcount, "drops of CoDel decrease");
            let delta = self.count - self.lastcount;
            // The next drop may have been planned for later.
            let recently = now.saturating_since(self.drop_next) < self.codel.interval * 16;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = self.codel.control_law(now, self.count);
            self.lastcount = self.count;
        }
    }
}

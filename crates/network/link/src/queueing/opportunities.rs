//! Delivery opportunities: moments at which a number of bytes can leave, as in mahimahi's `mm-link`.
//!
//! After `LinkQueue::rationalize` in mahimahi's `src/frontend/link_queue.cc` (version 0.98): an opportunity carries 1,504
//! bytes, because a full packet has 1,500 and the header of mahimahi's device 4. Packets share an opportunity, and a
//! packet may use the rest of one and the beginning of the next. A packet can use an opportunity only if it arrived in
//! an earlier millisecond. What nothing uses is lost.

use std::sync::Arc;

use posthaste_units::{Instant, Span};

use crate::Plan;
use crate::pattern::Script;

/// Bytes of an opportunity.
const OPPORTUNITY: u64 = 1504;
/// Bytes that each packet takes in addition to its own.
const HEADER: u64 = 4;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Progress of a link in its opportunities.
pub(crate) struct Opportunities {
    script: Arc<Script>,
    /// Millisecond of the opportunity in use, since the link's first packet.
    millis: u64,
    /// Opportunities of that millisecond that have been begun.
    begun: u32,
    /// Bytes left of the last of them.
    left: u64,
}

impl Opportunities {
    /// `None` if the plan has none.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let script = plan.script.as_ref();
        let script = script.filter(|script| script.has_opportunities())?;
        Some(Self {
            script: script.clone(),
            millis: 0,
            begun: 0,
            left: 0,
        })
    }

    /// Restores the initial state.
    pub(crate) fn restart(&mut self) {
        (self.millis, self.begun, self.left) = (0, 0, 0);
    }

    /// Sends `length` bytes that have waited since `arrived`, from `start` on, with the clock of a link that began at
    /// `began`. Returns the opportunity of the last byte, or `None` if there are none any more.
    pub(crate) fn send(
        &mut self,
        began: Instant,
        arrived: Instant,
        start: Instant,
        length: u64,
    ) -> Option<Instant> {
        let after = arrived.saturating_since(began).as_nanos() / NANOS_PER_MILLI + 1;
        let from = start
            .saturating_since(began)
            .as_nanos()
            .div_ceil(NANOS_PER_MILLI);
        self.skip_to(after.max(from));
        let mut need = length + HEADER;
        while need > self.left {
            need -= self.left;
            self.begin_next()?;
        }
        self.left -= need;
        Some(began + Span::from_nanos(self.millis.saturating_mul(NANOS_PER_MILLI)))
    }

    /// Loses all opportunities before `millis`.
    fn skip_to(&mut self, millis: u64) {
        if millis > self.millis {
            (self.millis, self.begun, self.left) = (millis, 0, 0);
        }
    }

    /// Begins the next opportunity.
    fn begin_next(&mut self) -> Option<()> {
        let (mut millis, mut count) = self.script.next_opportunities(self.millis)?;
        if millis == self.millis && self.begun >= count {
            (millis, count) = self.script.next_opportunities(self.millis + 1)?;
        }
        self.skip_to(millis);
        debug_assert!(self.begun < count, "an opportunity is used twice");
        self.begun += 1;
        self.left = OPPORTUNITY;
        Some(())
    }
}

//! Parts of a link that its stages work with during one call.

use posthaste_units::{Instant, Span};

use crate::queueing::exit::Exit;
use crate::{LinkCounters, Plan};

/// Plan, first arrival, exit and counters of the link that calls a stage.
pub(crate) struct LinkContext<'a, P> {
    pub(crate) plan: &'a Plan,
    /// Arrival of the link's first packet.
    pub(crate) began: Instant,
    pub(crate) exit: &'a mut Exit<P>,
    pub(crate) counters: &'a mut LinkCounters,
}

impl<P> LinkContext<'_, P> {
    /// Counts the delay of a packet, `waited` of it for the packet before, if jitter keeps the order of packets.
    #[inline(always)]
    pub(crate) fn delayed(&mut self, delay: Span, waited: Span) {
        if self.plan.jitter.is_some() && self.plan.keeps_order {
            self.counters.jittered.add(delay, waited);
        }
    }
}

//! The model of netem: first the delay, then the bandwidth, in one queue sorted by sending time.
//!
//! After `netem_enqueue` in Linux's `net/sched/sch_netem.c` (Linux 5 and 6): duplication and loss; then the limit,
//! which counts all unsent packets; then the sending time, unless reordering sends a packet at once. The sending time
//! is `max(now + delay, time_to_send of the last) + transmission`, with the maximum only if there is a rate. Jitter
//! therefore reorders without a bandwidth and cannot with one. Not modelled: slots, correlations, and the rounding down
//! of transmission times.

use posthaste_units::Instant;

use crate::conditions::Conditions;
use crate::context::LinkContext;
use crate::exit::PacketEntry;
use crate::meter::Meter;
use crate::slots::Slots;
use crate::{DropReason, Packet, Plan};

/// The queue of netem.
pub(crate) struct Netem {
    held: Slots,
    meter: Meter,
    conditions: Conditions,
    latest: Instant,
}

impl Netem {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            held: Slots::new(),
            meter: Meter::default(),
            conditions: Conditions::new(plan),
            latest: Instant::ORIGIN,
        }
    }

    /// Restores the initial state in the same memory.
    pub(crate) fn restart(&mut self) {
        self.held.clear();
        self.meter = Meter::default();
        self.conditions.restart();
        self.latest = Instant::ORIGIN;
    }

    pub(crate) fn push<P: Packet>(
        &mut self,
        entry: PacketEntry<P>,
        context: &mut LinkContext<'_, P>,
    ) {
        let (now, bytes) = (entry.arrived, entry.packet.bytes());
        self.held.release(now);
        if !context
            .plan
            .queue
            .has_room(self.held.packets(), self.held.bytes(), bytes)
        {
            return context.exit.drop(entry, now, DropReason::QueueFull);
        }
        let left = if entry.at_once {
            now
        } else {
            self.time_to_send(&entry, context)
        };
        debug_assert!(left >= now, "a packet leaves before it arrives");
        self.latest = self.latest.max(left);
        self.held.take(left, bytes);
        context.exit.deliver(entry, left);
    }
    fn time_to_send<P: Packet>(
        &mut self,
        entry: &PacketEntry<P>,
        context: &LinkContext<'_, P>,
    ) -> Instant {
        let (conditions, position) = (&mut self.conditions, entry.position);
        let delay = conditions.delay(context, position, entry.arrived, entry.deviation);
        let mut ready = entry.arrived + delay + entry.extra_delay;
        if context.plan.keeps_order {
            ready = ready.max(self.latest);
        }
        let mut rate = |now| conditions.rate(context, position, now);
        match rate(ready) {
            (Some(_), _) => {
                let length = context.plan.length(entry.packet.bytes());
                self.meter.send(ready, length, rate)
            }
            (None, _) => ready,
        }
    }
}

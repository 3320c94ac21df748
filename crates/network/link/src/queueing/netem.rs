//! The model of netem: first the delay, then the bandwidth, in one queue sorted by sending time.
//!
//! After `netem_enqueue` in Linux's `net/sched/sch_netem.c` (Linux 5 and 6): duplication and loss; then the limit,
//! which counts all unsent packets; then the sending time, unless reordering sends a packet at once. The sending time
//! is `max(now + delay, time_to_send of the last) + transmission`, with the maximum only if there is a rate. Jitter
//! therefore reorders without a bandwidth and cannot with one. Not modelled: slots, correlations, and the rounding down
//! of transmission times.

use posthaste_units::Instant;

use crate::queueing::context::LinkContext;
use crate::queueing::exit::PacketEntry;
use crate::queueing::slots::Slots;
use crate::queueing::transmitter::{Transmission, Transmitter};
use crate::{DropReason, Packet, Plan};

/// The queue of netem.
pub(crate) struct Netem {
    held: Slots,
    transmitter: Transmitter,
    latest: Instant,
}

impl Netem {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            held: Slots::new(),
            transmitter: Transmitter::new(plan),
            latest: Instant::ORIGIN,
        }
    }

    /// Restores the initial state in the same memory.
    pub(crate) fn restart(&mut self) {
        self.held.clear();
        self.transmitter.restart();
        self.latest = Instant::ORIGIN;
    }

    /// Follows the plan of a change. Packets in the link keep their departure.
    pub(crate) fn change(&mut self, plan: &Plan) {
        self.transmitter.change(plan);
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
        context: &mut LinkContext<'_, P>,
    ) -> Instant {
        let position = entry.position;
        let transmitter = &mut self.transmitter;
        let delay = transmitter.delay(context, position, entry.arrived, entry.deviation);
        let arrived = entry.arrived + delay + entry.extra_delay;
        let start = if context.plan.keeps_order {
            arrived.max(self.latest)
        } else {
            arrived
        };
        if !transmitter.is_limited(context, position, start) {
            let waited = start.since(arrived);
            context.delayed(delay + waited, waited);
            return start;
        }
        let bytes = entry.packet.bytes();
        transmitter.send(
            context,
            Transmission {
                position,
                arrived,
                start,
                bytes,
            },
        )
    }
}

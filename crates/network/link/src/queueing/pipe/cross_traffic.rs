//! Cross traffic in the queues of a pipe.
//!
//! It is simulated up to the arrival of each packet of the link, and while one waits. At other times it affects nothing
//! and is not simulated, so that an idle link needs no work.

use posthaste_units::Instant;

use super::DummynetPipe;
use crate::queueing::class_queue::QueuedPacket;
use crate::queueing::context::LinkContext;
use crate::queueing::transmitter::Transmission;
use crate::{BackgroundCounters, BackgroundTraffic, Packet, PacketTally};

impl<P: Packet> DummynetPipe<P> {
    /// Simulates the cross traffic that no packet has waited for, up to `now`, when a packet arrives.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Instant, context: &mut LinkContext<'_, P>) {
        if self.cross_traffic.is_some() {
            self.play(now, context);
        }
    }

    #[cold]
    fn play(&mut self, now: Instant, context: &mut LinkContext<'_, P>) {
        if let Some(cross_traffic) = &mut self.cross_traffic {
            cross_traffic.forget(now);
        }
        while self.cross_traffic_comes(now, context) || self.step(now, context) {}
    }

    /// Adds the next packet of cross traffic, unless it comes after `until` or after the next transmission.
    pub(super) fn cross_traffic_comes(
        &mut self,
        until: Instant,
        context: &mut LinkContext<'_, P>,
    ) -> bool {
        let until = until.min(self.due().unwrap_or(until));
        let Some(cross_traffic) = self
            .cross_traffic
            .as_mut()
            .filter(|cross_traffic| cross_traffic.next() <= until)
        else {
            return false;
        };
        let (arrived, BackgroundTraffic { dscp, bytes, .. }) =
            (cross_traffic.take(), cross_traffic.background());
        let class = self.class(context.plan, dscp);
        let queue = &mut self.queues[class];
        let packet = QueuedPacket::Other { arrived, bytes };
        if !self.ahead {
            queue.push(arrived, packet, context);
        } else if queue.has_room(arrived, context.plan, bytes) {
            let at = arrived.max(self.transmitter.free());
            self.occupy_for_cross_traffic(0, arrived, at, bytes, context);
        } else {
            queue.refuse(arrived, packet, context.exit);
        }
        true
    }

    /// Transmits a packet of cross traffic that has waited since `arrived`, at `now`.
    pub(super) fn occupy_for_cross_traffic(
        &mut self,
        class: usize,
        arrived: Instant,
        now: Instant,
        bytes: u32,
        context: &LinkContext<'_, P>,
    ) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.charge(class, now, context.plan.length(bytes), bytes);
        }
        let packet = Transmission {
            position: self.position,
            arrived,
            start: now,
            bytes,
        };
        self.occupy(class, packet, context);
        if let Some(cross_traffic) = &mut self.cross_traffic {
            cross_traffic.sent();
        }
    }

    pub(crate) fn background_counters(&self) -> Option<BackgroundCounters> {
        let cross_traffic = self.cross_traffic.as_ref()?;
        let mut dropped = PacketTally::default();
        self.queues
            .iter()
            .for_each(|queue| dropped += queue.dropped.cross_traffic);
        Some(BackgroundCounters {
            sent: cross_traffic.sent_so_far(),
            dropped,
        })
    }
}

//! Cross traffic in the queues of a pipe.
//!
//! It is simulated up to the arrival of each packet of the link, and while one waits. At other times it affects nothing
//! and is not simulated, so that an idle link needs no work.

use posthaste_units::Instant;

use super::Pipe;
use crate::exit::Exit;
use crate::lane::Waiting;
use crate::{Background, BackgroundCounters, Packet, Plan, Tally};

impl<P: Packet> Pipe<P> {
    /// Simulates the cross traffic that no packet has waited for, up to `now`, when a packet arrives.
    #[inline]
    pub(crate) fn catch_up(
        &mut self,
        now: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) {
        if self.others.is_some() {
            self.play(now, plan, began, exit);
        }
    }

    #[cold]
    fn play(&mut self, now: Instant, plan: &Plan, began: Instant, exit: &mut Exit<P>) {
        if let Some(others) = &mut self.others {
            others.forget(now);
        }
        while self.others_come(now, plan, began, exit) || self.step(now, plan, began, exit) {}
    }

    /// Adds the next packet of cross traffic, unless it comes after `until` or after the next transmission.
    pub(super) fn others_come(
        &mut self,
        until: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) -> bool {
        let until = until.min(self.due().unwrap_or(until));
        let Some(others) = self.others.as_mut().filter(|others| others.next() <= until) else {
            return false;
        };
        let (arrived, Background { dscp, bytes, .. }) = (others.take(), others.background());
        let class = self.class(plan, dscp);
        let lane = &mut self.lanes[class];
        let packet = Waiting::Other { arrived, bytes };
        if !self.ahead {
            lane.push(arrived, packet, plan, exit);
        } else if lane.has_room(arrived, plan, bytes) {
            let at = arrived.max(self.meter.free());
            self.occupy_for_others(0, at, bytes, plan, began);
        } else {
            lane.refuse(arrived, packet, exit);
        }
        true
    }

    /// Transmits a packet of cross traffic at `now`.
    pub(super) fn occupy_for_others(
        &mut self,
        class: usize,
        now: Instant,
        bytes: u32,
        plan: &Plan,
        began: Instant,
    ) {
        if let Some(shares) = &mut self.shares {
            shares.charge(class, now, plan.length(bytes), bytes);
        }
        self.occupy(class, now, self.position, bytes, plan, began);
        if let Some(others) = &mut self.others {
            others.sent();
        }
    }

    pub(crate) fn background_counters(&self) -> Option<BackgroundCounters> {
        let others = self.others.as_ref()?;
        let mut dropped = Tally::default();
        self.lanes
            .iter()
            .for_each(|lane| dropped += lane.dropped.others);
        Some(BackgroundCounters {
            sent: others.sent_so_far(),
            dropped,
        })
    }
}

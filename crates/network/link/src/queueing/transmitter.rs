//! The bandwidth of a link: one transmission after another, at a rate or at delivery opportunities.

use posthaste_units::{Instant, Span};

use crate::Plan;
use crate::queueing::conditions::Conditions;
use crate::queueing::context::LinkContext;
use crate::queueing::meter::Meter;
use crate::queueing::opportunities::Opportunities;

/// Sends packets at the bandwidth or the delivery opportunities of one link, and knows their delays.
pub(crate) struct Transmitter {
    meter: Meter,
    conditions: Conditions,
    /// `None` if the link has a rate.
    opportunities: Option<Opportunities>,
}

/// A packet to transmit.
#[derive(Clone, Copy)]
pub(crate) struct Transmission {
    /// Position of the packet, for conditions that a pattern changes by packet.
    pub(crate) position: u64,
    /// Time from which the packet has been waiting.
    pub(crate) arrived: Instant,
    /// Earliest start.
    pub(crate) start: Instant,
    /// Bytes of the IP packet.
    pub(crate) bytes: u32,
}

impl Transmitter {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            meter: Meter::default(),
            conditions: Conditions::new(plan),
            opportunities: Opportunities::new(plan),
        }
    }

    /// Restores the initial state.
    pub(crate) fn restart(&mut self) {
        self.meter = Meter::default();
        self.conditions.restart();
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.restart();
        }
    }

    /// Follows the plan of a change. The pattern goes on.
    pub(crate) fn change(&mut self, plan: &Plan) {
        self.conditions.change(plan);
    }

    /// Earliest start of the next packet.
    #[inline]
    pub(crate) const fn free(&self) -> Instant {
        self.meter.free()
    }

    /// Delay for the packet at `position` with the draw `deviation`.
    #[inline]
    pub(crate) fn delay<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        position: u64,
        now: Instant,
        deviation: f64,
    ) -> Span {
        self.conditions.delay(context, position, now, deviation)
    }

    /// True if the packet at `position` has a bandwidth or opportunities at `now`.
    pub(crate) fn is_limited<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        position: u64,
        now: Instant,
    ) -> bool {
        self.opportunities.is_some() || self.conditions.rate(context, position, now).0.is_some()
    }

    /// Transmits a packet after earlier ones. Returns the end.
    #[inline(always)]
    pub(crate) fn send<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        packet: Transmission,
    ) -> Instant {
        let length = context.plan.length(packet.bytes);
        if self.opportunities.is_some() {
            return self.send_at_opportunity(context, packet, length);
        }
        self.send_at_rate(context, packet, length)
    }

    #[inline(always)]
    fn send_at_rate<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        packet: Transmission,
        length: u64,
    ) -> Instant {
        let conditions = &mut self.conditions;
        if conditions.are_steady() {
            self.meter
                .send(packet.start, length, |_| (context.plan.bandwidth, None))
        } else {
            self.meter.send(packet.start, length, |now| {
                conditions.rate(context, packet.position, now)
            })
        }
    }

    #[cold]
    fn send_at_opportunity<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        packet: Transmission,
        length: u64,
    ) -> Instant {
        let start = packet.start.max(self.free());
        let opportunities = self.opportunities.as_mut();
        let end = opportunities
            .and_then(|schedule| schedule.send(context.began, packet.arrived, start, length));
        let Some(end) = end else {
            // After the last opportunity, the link has the bandwidth of its plan again.
            return self.send_at_rate(context, packet, length);
        };
        debug_assert!(end >= start, "a packet leaves before it can");
        self.meter.skip_to(end);
        end
    }
}

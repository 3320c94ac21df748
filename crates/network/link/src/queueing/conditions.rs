//! Bandwidth and delay in force at a time: from the pattern, or else from the plan.

use posthaste_units::{Instant, Span};

use crate::Plan;
use crate::impairments::jitter::Around;
use crate::pattern::{Cursor, InForce};
use crate::queueing::context::LinkContext;
use crate::queueing::meter::Rated;

/// Time-dependent conditions of a link.
pub(crate) struct Conditions {
    /// `None` if no pattern changes them.
    cursor: Option<Cursor>,
    /// Distribution of the delay at its last use, initially around the plan's delay. Cached because means rarely
    /// change.
    around: Option<Around>,
}

impl Conditions {
    pub(crate) fn new(plan: &Plan) -> Self {
        let script = plan.script.as_ref();
        let changing = script.filter(|script| script.changes_conditions());
        Self {
            cursor: changing.map(|script| script.cursor()),
            around: plan.jitter.map(|jitter| jitter.around(plan.delay)),
        }
    }

    /// Restores the initial state.
    pub(crate) fn restart(&mut self) {
        if let Some(cursor) = &mut self.cursor {
            cursor.rewind();
        }
    }

    /// Follows the plan of a change. The pattern goes on.
    pub(crate) fn change(&mut self, plan: &Plan) {
        self.around = plan.jitter.map(|jitter| jitter.around(plan.delay));
    }

    /// True if the plan's own values are always in force.
    #[inline]
    pub(crate) const fn are_steady(&self) -> bool {
        self.cursor.is_none()
    }

    /// Bandwidth for the packet at `position` at time `now`.
    #[inline]
    pub(crate) fn rate<P>(
        &mut self,
        context: &LinkContext<'_, P>,
        position: u64,
        now: Instant,
    ) -> Rated {
        let bandwidth = context.plan.bandwidth;
        let Some(force) = self.in_force(context.began, position, now) else {
            return (bandwidth, None);
        };
        let until = force.until.map(|until| context.began + until);
        (force.bandwidth.or(bandwidth), until)
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
        let plan = context.plan;
        let force = self.in_force(context.began, position, now);
        let mean = force.and_then(|force| force.delay).unwrap_or(plan.delay);
        let (Some(around), Some(jitter)) = (&mut self.around, plan.jitter) else {
            return mean;
        };
        if around.mean() != mean {
            *around = jitter.around(mean);
        }
        around.delay(deviation)
    }

    fn in_force(&mut self, began: Instant, position: u64, now: Instant) -> Option<InForce> {
        let cursor = self.cursor.as_mut()?;
        // Cross traffic can precede the link's first packet.
        Some(cursor.in_force(position, now.saturating_since(began)))
    }
}

//! Which bandwidth and which delay hold at a time: the pattern's, or else the plan's own.

use posthaste_units::{Instant, Span};

use crate::Plan;
use crate::meter::Rated;
use crate::pattern::{Cursor, InForce};

/// The conditions under which a link sends.
pub(crate) struct Conditions {
    /// None where no pattern ever changes them.
    cursor: Option<Cursor>,
}

impl Conditions {
    pub(crate) fn new(plan: &Plan) -> Self {
        let script = plan.script.as_ref();
        let changing = script.filter(|script| script.changes_conditions());
        Self {
            cursor: changing.map(|script| script.cursor()),
        }
    }

    /// The bandwidth for the packet at `position`, at `now` on a link whose first packet arrived
    /// at `began`.
    pub(crate) fn rate(
        &mut self,
        plan: &Plan,
        began: Instant,
        position: u64,
        now: Instant,
    ) -> Rated {
        let force = self.in_force(began, position, now);
        let until = force.until.map(|until| began + until);
        (force.bandwidth.or(plan.bandwidth), until)
    }

    /// The delay likewise.
    pub(crate) fn delay(
        &mut self,
        plan: &Plan,
        began: Instant,
        position: u64,
        now: Instant,
    ) -> Span {
        let force = self.in_force(began, position, now);
        force.delay.unwrap_or(plan.delay)
    }

    fn in_force(&mut self, began: Instant, position: u64, now: Instant) -> InForce {
        match &mut self.cursor {
            Some(cursor) => cursor.in_force(position, now.since(began)),
            None => InForce::default(),
        }
    }
}

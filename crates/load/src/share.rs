//! The share of a plan that one process carries out.

use crate::plan::Plan;

/// Some of the event loops of a plan. Loop n of N sends every N-th request, from request n on, so that any division
/// sends the same requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the first loop.
    pub first: usize,
    /// Number of loops.
    pub loops: usize,
}

impl Share {
    /// True if this loop belongs to the share.
    pub(crate) fn has(self, index: usize) -> bool {
        (self.first..self.first + self.loops).contains(&index)
    }

    /// All loops of a plan.
    pub const fn whole(plan: &Plan) -> Self {
        Self {
            first: 0,
            loops: plan.threads,
        }
    }
}

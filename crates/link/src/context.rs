//! Parts of a link that its stages work with during one call.

use posthaste_units::Instant;

use crate::Plan;
use crate::exit::Exit;

/// Plan, first arrival and exit of the link that calls a stage.
pub(crate) struct LinkContext<'a, P> {
    pub(crate) plan: &'a Plan,
    /// Arrival of the link's first packet.
    pub(crate) began: Instant,
    pub(crate) exit: &'a mut Exit<P>,
}

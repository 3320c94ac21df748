//! Transactions of the studies, to emulate or to simulate.

use posthaste_units::Span;

use super::line::{NetworkLine, PlannedDrops};
use super::service::PaperService;

/// Time of the server to make a reply.
pub(super) const PROCESSING: Span = Span::from_millis(200);

/// A transaction to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) service: &'static PaperService,
    pub(super) line: NetworkLine,
    pub(super) drops: PlannedDrops,
    /// True if the line's delays vary as in the paper.
    pub(super) varies: bool,
}

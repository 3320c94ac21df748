//! The stage between admission and the upstream: the wait for a permit of this thread.

use posthaste_units::Instant;

use super::exchange::Exchange;
use crate::clock::now;
use crate::upstream::concurrency_limit::Permit;

/// The permit of a request and the time at which it is sent.
pub(super) struct QueuedRequest<'p> {
    pub(super) permit: Permit<'p>,
    pub(super) sent: Instant,
}

impl<'r> Exchange<'_, 'r> {
    /// Waits for a permit of this thread.
    pub(super) async fn queue(&self) -> QueuedRequest<'r> {
        let permit = self.gateway.limit.acquire().await;
        self.metrics().queued(permit.waited);
        let sent = now();
        self.journal.sent(sent);
        QueuedRequest { permit, sent }
    }
}

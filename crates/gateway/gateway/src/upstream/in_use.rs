//! Requests and tunnels in flight to one endpoint.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::error::UpstreamError;
use crate::record::metrics::GatewayMetrics;

/// The number in flight, of one thread.
pub(super) struct InUse {
    metrics: Arc<GatewayMetrics>,
    count: Cell<usize>,
}

/// One in flight, while it exists.
pub(super) struct InUseGuard(Rc<InUse>);

impl InUse {
    pub(super) fn new(metrics: Arc<GatewayMetrics>) -> Self {
        Self {
            metrics,
            count: Cell::new(0),
        }
    }

    pub(super) fn get(&self) -> usize {
        self.count.get()
    }

    /// Counts one more.
    pub(super) fn begin(self: &Rc<Self>) -> InUseGuard {
        self.count.set(self.count.get() + 1);
        InUseGuard(self.clone())
    }
}

impl InUseGuard {
    /// Counts a failure of the upstream.
    pub(super) fn count_failure(&self, failure: &UpstreamError) {
        self.0.metrics.failed(failure.kind());
    }

    /// Counts one more.
    pub(super) fn again(&self) -> Self {
        self.0.begin()
    }
}

impl Drop for InUseGuard {
    fn drop(&mut self) {
        debug_assert!(self.0.count.get() > 0, "a request ends twice");
        self.0.count.set(self.0.count.get() - 1);
    }
}

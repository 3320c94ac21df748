//! The end of a gateway: readiness fails, it begins to drain, the last connection has closed. Each has a log line.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use posthaste_units::{Instant, Span};

use crate::clock::now;
use crate::context::GatewayContext;

/// The end of a gateway. Dropped after the last connection.
pub(crate) struct Drain {
    context: Arc<GatewayContext>,
    began: OnceLock<Instant>,
}

impl Drain {
    pub(crate) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: context.clone(),
            began: OnceLock::new(),
        }
    }

    /// Makes `/healthz` answer 503. Returns the time in which clients are still served, `drain.delay`.
    pub(crate) fn announce(&self) -> Span {
        let delay = self.context.resolved().config.drain.delay;
        let was_stopping = self.context.is_stopping.swap(true, Relaxed);
        if !was_stopping && delay > Span::ZERO {
            tracing::info!(%delay, "stopping: /healthz fails, and clients are served until the delay has passed");
        }
        delay
    }

    /// The gateway begins to drain. Only the first call counts.
    pub(crate) fn begin(&self) {
        self.context.is_stopping.store(true, Relaxed);
        if self.began.set(now()).is_err() {
            return;
        }
        let now = self.context.counters.snapshot();
        tracing::info!(
            connections = now.open,
            requests = now.in_service,
            "draining: connections open, and requests in service"
        );
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let replies = &self.context.metrics.replies;
        let served: u64 = replies.iter().map(|count| count.load(Relaxed)).sum();
        let took = self.began.get().map(|began| now().since(*began));
        tracing::info!(
            served,
            cut_off = self.context.counters.snapshot().cut_off,
            seconds = took.unwrap_or_default().as_secs_f64(),
            "ended: requests served, connections cut off, and the time it took"
        );
    }
}

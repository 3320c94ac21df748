//! Timeouts for upstreams without progress.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep};

/// A timeout that starts with the first wait and restarts with each progress.
///
/// It lives as long as the connection, because resetting one timer costs less than creating one for each request.
#[derive(Default)]
pub(super) struct IdleTimeout {
    limit: Duration,
    waits: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    /// Sets the limit for a new wait.
    pub(super) fn begin(&mut self, limit: Duration) {
        debug_assert!(!limit.is_zero(), "a wait has no time");
        self.limit = limit;
        self.renew();
    }

    /// Records progress.
    pub(super) fn renew(&mut self) {
        self.waits = false;
    }

    /// Ready after `limit` without progress. Also if the task has used up its budget: an upstream that always has
    /// something to read uses it up at each turn, and the timer would never end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !std::mem::replace(&mut self.waits, true) {
            timer.as_mut().reset(Instant::now() + limit);
        }
        std::pin::pin!(unconstrained(timer.as_mut())).poll(cx)
    }
}

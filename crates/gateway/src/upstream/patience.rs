//! How long an upstream may do nothing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// A time limit that begins when something is first waited for, and anew with each progress.
pub(super) struct Patience {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, timer: None }
    }

    /// There was progress.
    pub(super) fn renew(&mut self) {
        self.timer = None;
    }

    /// Ready when nothing has happened for the limit.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        timer.as_mut().poll(cx)
    }
}

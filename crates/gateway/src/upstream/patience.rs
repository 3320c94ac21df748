//! How long an upstream may do nothing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// A time limit that begins when something is first waited for, and anew with each progress.
///
/// It lives as long as a connection: a timer that stays and is put off costs less than one for each request.
#[derive(Default)]
pub(super) struct Patience {
    limit: Duration,
    waits: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Something else is waited for from now on, for `limit` at most.
    pub(super) fn begin(&mut self, limit: Duration) {
        self.limit = limit;
        self.renew();
    }

    /// There was progress.
    pub(super) fn renew(&mut self) {
        self.waits = false;
    }

    /// Ready when nothing has happened for the limit.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !std::mem::replace(&mut self.waits, true) {
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(cx)
    }
}

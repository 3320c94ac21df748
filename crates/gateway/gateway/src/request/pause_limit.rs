//! Time limit for the pauses of a client that sends a stream of messages.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The limit, with the timer of the current pause.
pub(super) struct PauseLimit {
    limit: Duration,
    is_pause: bool,
    timer: Pin<Box<Sleep>>,
}

impl PauseLimit {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            is_pause: false,
            timer: Box::pin(sleep(limit)),
        }
    }

    /// True if the current pause has lasted too long. Without a pause, the next one starts afresh.
    pub(super) fn poll(&mut self, is_pause: bool, cx: &mut Context<'_>) -> bool {
        let was_pause = std::mem::replace(&mut self.is_pause, is_pause);
        if is_pause && !was_pause {
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        is_pause && matches!(self.timer.as_mut().poll(cx), Poll::Ready(()))
    }
}

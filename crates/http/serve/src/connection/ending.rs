//! The end of a connection: requested from outside of its task, at once or between requests.

use std::cell::{Cell, RefCell};
use std::task::Waker;

/// Requests to end a connection, and the waker of its task. Other changes that the task has to see wake it, too.
#[derive(Default)]
pub(crate) struct ConnectionEnding {
    over: Cell<bool>,
    /// The connection has ended with nothing missing, and closes without a reset.
    is_complete: Cell<bool>,
    /// The end of the peer's data does not end its request.
    holds_input_end: Cell<bool>,
    /// The last request gets no reply, and the connection closes.
    is_unanswered: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl ConnectionEnding {
    /// Makes the connection close at its next poll, in any phase.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.wake();
    }

    /// Makes the connection close as [`ConnectionEnding::end`], between requests: the peer has everything.
    pub(crate) fn end_unused(&self) {
        self.is_complete.set(true);
        self.end();
    }

    /// True if the connection must close at once.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// True if the connection closes at once, and something is missing.
    pub(crate) fn is_cut(&self) -> bool {
        self.over.get() && !self.is_complete.get()
    }

    /// Makes the connection close in order, without a reply to its request.
    pub(crate) fn close_unanswered(&self) {
        self.is_unanswered.set(true);
        self.wake();
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered.get()
    }

    /// Holds back the end of the peer's data, or releases it.
    pub(crate) fn hold_input_end(&self, holds: bool) {
        self.holds_input_end.set(holds);
    }

    pub(crate) fn holds_input_end(&self) -> bool {
        self.holds_input_end.get()
    }

    /// Stores the waker for [`ConnectionEnding::wake`].
    pub(crate) fn set_waker(&self, waker: &Waker) {
        if self.waker.borrow().is_none() {
            *self.waker.borrow_mut() = Some(waker.clone());
        }
    }

    /// Wakes the connection's task, so that it sees changes.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

//! The requests of a connection: their number, the rejected ones, and the body of the last.

use std::cell::{Cell, RefCell};

use crate::framing::Reset;
use crate::framing::check::Rejection;

/// Received requests, up to the last one.
#[derive(Default)]
pub(crate) struct ReceivedRequests {
    /// Number of requests received; of HTTP/2 those that the decoder has accepted.
    count: Cell<u64>,
    /// HTTP/1: the number of the request to reject, always the last.
    rejected: Cell<Option<(u64, Rejection)>>,
    /// HTTP/2: requests that the decoder has refused, and that the handler has not observed yet.
    refused: RefCell<Vec<Reset>>,
    /// HTTP/2: requests that had begun at the last of them.
    opened: Cell<u64>,
    /// The last request had a body, possibly unread in part.
    had_body: Cell<bool>,
    /// The last request's body is not completely read.
    body_left: Cell<bool>,
}

impl ReceivedRequests {
    /// A request has arrived, with or without a body.
    pub(crate) fn set_body(&self, has: bool) {
        self.had_body.set(has);
        self.body_left.set(has);
    }

    /// The last request's body has been read completely.
    pub(crate) fn finish_body(&self) {
        self.body_left.set(false);
    }

    /// True if the last request's body is not completely read.
    pub(crate) fn has_body_left(&self) -> bool {
        self.body_left.get()
    }

    /// True if the last request had a body.
    pub(crate) fn had_body(&self) -> bool {
        self.had_body.get()
    }

    /// Rejects the head of request `number`, from 1. No later byte is read.
    pub(crate) fn reject(&self, number: u64, rejection: Rejection) {
        self.rejected.set(Some((number, rejection)));
    }

    /// Counts a request of HTTP/1. Returns the rejection, if it must not be served.
    pub(crate) fn next_request(&self) -> Result<(), Rejection> {
        self.count.set(self.count.get() + 1);
        match self.rejected.get() {
            Some((number, rejection)) if number == self.count.get() => Err(rejection),
            _ => Ok(()),
        }
    }

    /// Counts a request of HTTP/2.
    pub(crate) fn next_stream(&self) {
        self.count.set(self.count.get() + 1);
    }

    /// HTTP/2: the decoder has refused a request, or the rest of one; `opened` requests have begun.
    pub(crate) fn refused_stream(&self, reset: Reset, opened: u64) {
        self.opened.set(opened);
        self.refused.borrow_mut().push(reset);
    }

    /// Takes the refused requests of HTTP/2, when all accepted ones are at the service. The service observes the end of
    /// those that it got. They count as received.
    pub(crate) fn take_refused(&self) -> Vec<Reset> {
        let mut refused = self.refused.take();
        if refused.is_empty() {
            return refused;
        }
        let count = self.count.get();
        let unserved = self.opened.get().saturating_sub(count);
        refused.sort();
        refused.truncate(usize::try_from(unserved).unwrap_or(usize::MAX));
        self.count.set(count + refused.len() as u64);
        refused
    }

    /// True before a second request.
    pub(crate) fn is_first_request(&self) -> bool {
        self.count.get() <= 1
    }
}

//! Progress of an upload, and the time that it waits for its client.

use std::cell::Cell;
use std::rc::Rc;

use posthaste_units::{Instant, Span};

use crate::clock::now;

/// Upload progress. Tells a stalled client from a stalled upstream.
#[derive(Default)]
pub(crate) struct UploadProgress {
    /// Set while the gateway waits for the client's next piece.
    waits_since: Cell<Option<Instant>>,
    waited: Cell<Span>,
    pieces: Cell<u64>,
    bytes: Cell<u64>,
    is_over: Cell<bool>,
}

/// The upload of one request from now on.
pub(crate) struct Upload {
    /// `None` without a body.
    progress: Option<Rc<UploadProgress>>,
    waited_before: Span,
}

impl Upload {
    pub(crate) fn new(progress: Option<Rc<UploadProgress>>) -> Self {
        let waited = progress.as_ref().map(|progress| progress.waited());
        Self {
            waited_before: waited.unwrap_or_default(),
            progress,
        }
    }

    pub(crate) fn progress(&self) -> Option<&UploadProgress> {
        self.progress.as_deref()
    }

    /// Time spent waiting for the client since the start.
    pub(crate) fn waited(&self) -> Span {
        let waited = self.progress().map_or(Span::ZERO, UploadProgress::waited);
        debug_assert!(waited >= self.waited_before, "an upload took time back");
        waited.saturating_sub(self.waited_before)
    }
}

impl UploadProgress {
    /// True if the gateway waits for the client's next piece.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.waits_since.get().is_some()
    }

    /// Time spent waiting for the client so far.
    pub(crate) fn waited(&self) -> Span {
        let waits = self.waits_since.get().map(|since| now().since(since));
        self.waited.get() + waits.unwrap_or_default()
    }

    /// True if the upload has ended: the body was sent or cannot be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Starts or ends a wait for the client.
    pub(crate) fn waits(&self, waits: bool) {
        match (waits, self.waits_since.get()) {
            (true, None) => self.waits_since.set(Some(now())),
            (false, Some(_)) => {
                self.waited.set(self.waited());
                self.waits_since.set(None);
            }
            _ => {}
        }
    }

    /// Counts a piece of the body, or its end.
    pub(crate) fn count_piece(&self) {
        self.pieces.set(self.pieces.get() + 1);
    }

    /// Counts bytes received from the client.
    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Bytes received from the client.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Ends the upload, and a wait for the client.
    pub(crate) fn finish(&self) {
        self.waits(false);
        self.is_over.set(true);
    }

    /// Pieces received from the client.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.get()
    }
}

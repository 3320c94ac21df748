//! Interim replies (103) to a request of HTTP/1.1, written before its reply.
//!
//! hyper has no way to send them. The handler runs while hyper has nothing to write, so the bytes go to the stream before
//! its next write.

use std::cell::{Cell, RefCell};

use hyper::HeaderMap;

/// Interim replies of one connection that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct InterimReplies {
    /// The client understands them: the request is of HTTP/1.1.
    pub(crate) are_allowed: Cell<bool>,
    has_any: Cell<bool>,
    bytes: RefCell<Vec<u8>>,
}

impl InterimReplies {
    /// Adds a reply 103 with these fields. False if the last one is not written, or the client takes none.
    pub(crate) fn add(&self, fields: &HeaderMap) -> bool {
        if !self.are_allowed.get() || self.has_any.get() {
            return false;
        }
        let mut bytes = self.bytes.borrow_mut();
        bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        for (name, value) in fields {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        self.has_any.set(true);
        true
    }

    /// True if bytes are to be written.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.get()
    }

    /// Takes the bytes, to write them.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.bytes.take()
    }

    /// Puts back the bytes that were not written.
    pub(crate) fn put_back(&self, rest: Vec<u8>) {
        self.has_any.set(!rest.is_empty());
        self.bytes.replace(rest);
    }
}

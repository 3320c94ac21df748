//! Early hints of an upstream (103, RFC 8297), on their way to the client.
//!
//! The HTTP/1.1 client skips interim replies. [`HintScan`] reads them from the bytes that it gets. A reply that does not
//! begin with an interim one costs a comparison. HTTP/2 has a call for them.

use std::cell::{Cell, RefCell};

use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use posthaste_serve::Peer;

use crate::request::headers::strip_hop_by_hop;
use crate::request::trailers::RemovedTrailers;

/// Start of an interim reply.
const INTERIM: &[u8] = b"HTTP/1.1 1";

/// The status of early hints.
const EARLY_HINTS: &[u8] = b"103";

/// The interim replies at the start of the bytes after a request.
#[derive(Debug, Default)]
pub(super) struct HintScan {
    /// The reply has begun, or an interim reply came in several pieces.
    is_over: Cell<bool>,
    has_any: Cell<bool>,
    /// Fields of the last hints.
    found: RefCell<HeaderMap>,
}

/// The client that gets the hints.
pub(super) struct HintReceiver<'a> {
    pub(super) peer: &'a Peer,
    /// Fields that the route removes or sets in replies. `None` if no hints are forwarded.
    pub(super) removed: Option<&'a RemovedTrailers>,
}

impl HintScan {
    /// A request is sent.
    pub(super) fn begin(&self) {
        self.is_over.set(false);
        self.has_any.set(false);
    }

    /// Scans the next bytes of a reply.
    pub(super) fn feed(&self, mut bytes: &[u8]) {
        while !self.is_over.get() {
            if !bytes.starts_with(INTERIM) {
                self.is_over.set(!bytes.is_empty());
                return;
            }
            let Some(length) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else {
                self.is_over.set(true);
                return;
            };
            let (head, rest) = (&bytes[..length], &bytes[length + 4..]);
            if head[INTERIM.len() - 1..].starts_with(EARLY_HINTS)
                && let Some(fields) = fields(head)
            {
                self.found.replace(fields);
                self.has_any.set(true);
            }
            bytes = rest;
        }
    }

    /// Returns the fields of the last hints, once.
    pub(super) fn take(&self) -> Option<HeaderMap> {
        self.has_any.replace(false).then(|| self.found.take())
    }
}

impl HintReceiver<'_> {
    /// Sends hints to the client, without fields of one hop and those that the route changes.
    pub(super) fn send(&self, mut fields: HeaderMap) {
        let Some(removed) = self.removed else {
            return;
        };
        strip_hop_by_hop(&mut fields);
        fields.remove(CONTENT_LENGTH);
        for name in removed.iter().flat_map(|names| names.iter()) {
            fields.remove(name);
        }
        // Hints are optional: a client that is not ready gets none.
        self.peer.send_early_hints(&fields);
    }
}

/// The fields of a head without its last line break. `None` if one is invalid.
fn fields(head: &[u8]) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        fields.append(name, value);
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pieces: &[&str]) -> Option<Vec<HeaderValue>> {
        let scan = HintScan::default();
        pieces.iter().for_each(|piece| scan.feed(piece.as_bytes()));
        let fields = scan.take()?;
        Some(fields.get_all("link").iter().cloned().collect())
    }

    #[test]
    fn hints_come_before_the_reply() {
        const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nlink:</b>\r\n\r\n";
        const OK: &str = "HTTP/1.1 200 OK\r\nLink: </c>\r\n\r\n";
        let both = Some(vec![
            HeaderValue::from_static("</a>"),
            HeaderValue::from_static("</b>"),
        ]);
        assert_eq!(links(&[HINTS]), both);
        assert_eq!(links(&[HINTS, OK]), both);
        assert_eq!(
            links(&[&format!("HTTP/1.1 102 Processing\r\n\r\n{HINTS}{OK}")]),
            both
        );
        assert_eq!(links(&[OK]), None);
        assert_eq!(links(&[OK, HINTS]), None);
        assert_eq!(links(&[&HINTS[..30], &HINTS[30..]]), None);
        assert_eq!(links(&["HTTP/1.1 103 Early Hints\r\n a: b\r\n\r\n"]), None);
    }
}

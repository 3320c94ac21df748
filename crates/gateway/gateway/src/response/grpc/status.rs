//! The fields of a gRPC status.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::record::grpc_counters::STATUSES;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Characters of a `grpc-message` that are encoded. The encoder adds all beyond ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Status of a call whose deadline has passed.
pub(in crate::response) const DEADLINE_EXCEEDED: u8 = 4;
/// The service cannot be reached, or has stopped to reply.
pub(in crate::response) const UNAVAILABLE: u8 = 14;

/// The index in [`STATUSES`] of the status in a head or in trailers. `None` without one.
pub(super) fn index_of(fields: &HeaderMap) -> Option<usize> {
    let status = fields.get(STATUS)?.to_str().ok();
    let known = STATUSES.len() - 1;
    let index = status.and_then(|status| status.parse().ok());
    Some(index.filter(|index| *index < known).unwrap_or(known))
}

/// The fields of a status.
pub(super) fn fields(status: u8, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    add(&mut fields, status, message);
    fields
}

pub(in crate::response) fn add(fields: &mut HeaderMap, status: u8, message: &str) {
    fields.insert(STATUS, HeaderValue::from(u16::from(status)));
    let message = utf8_percent_encode(message, ENCODED).to_string();
    // Never fails: all other characters are encoded.
    if let Ok(message) = HeaderValue::try_from(message) {
        fields.insert(MESSAGE, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_beyond_the_list_are_counted_together() {
        for (status, index) in [("0", 0), ("16", 16), ("17", 17), ("-1", 17), ("x", 17)] {
            let mut fields = HeaderMap::new();
            fields.insert(STATUS, HeaderValue::from_static(status));
            assert_eq!(index_of(&fields), Some(index), "{status}");
        }
        assert_eq!(index_of(&HeaderMap::new()), None);
    }
}

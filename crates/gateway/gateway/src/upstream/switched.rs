//! An upstream's stream after a switch of protocol.

use bytes::Bytes;
use posthaste_serve::Stream;

use super::in_use::InUseGuard;

/// Extension of a request that asks to switch protocols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switches;

/// The stream of an upstream that has switched protocols. Counts as one connection in use while it exists.
pub(crate) struct SwitchedUpstream {
    pub(crate) stream: Stream,
    /// Bytes that arrived together with the reply.
    pub(crate) ahead: Bytes,
    _in_use: InUseGuard,
}

impl SwitchedUpstream {
    pub(super) fn new(stream: Stream, ahead: Bytes, in_use: InUseGuard) -> Self {
        Self {
            stream,
            ahead: if ahead.is_empty() {
                // An empty one may hold a buffer.
                Bytes::new()
            } else {
                ahead
            },
            _in_use: in_use,
        }
    }
}

//! Fields of a request that depend on one upstream of HTTP/1.1. They are undone before the request goes to another.

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderValue, TE};
use posthaste_gateway_config::UpstreamProtocol;

use super::target::UpstreamTarget;

/// The changes of a request for one upstream.
pub(super) struct Http1Fields {
    /// Removed, because TE is for one hop.
    te: Option<HeaderValue>,
    adds_host: bool,
}

impl Http1Fields {
    /// Removes TE, which only upstreams of HTTP/2 get. Adds Host with the upstream's name if there is none: HTTP/1.0
    /// requires none.
    pub(super) fn apply(headers: &mut HeaderMap, target: &UpstreamTarget) -> Self {
        let may_have_te = target.protocol != UpstreamProtocol::Http1;
        let te = may_have_te.then(|| headers.remove(TE)).flatten();
        let adds_host = !headers.contains_key(HOST);
        if adds_host {
            headers.insert(HOST, target.host.clone());
        }
        Self { te, adds_host }
    }

    /// Restores the fields.
    pub(super) fn undo(self, headers: &mut HeaderMap) {
        if let Some(te) = self.te {
            headers.insert(TE, te);
        }
        if self.adds_host {
            headers.remove(HOST);
        }
    }
}

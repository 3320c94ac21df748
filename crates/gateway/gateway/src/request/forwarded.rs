//! The request for the upstream, and the properties of its head that the reply depends on.

use hyper::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, IF_NONE_MATCH, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Request, Version};
use posthaste_compression::forbids_transform;
use posthaste_serve::Peer;

use super::body::RequestBody;
use super::client::ClientIdentity;
use super::headers::{add_via, field_lines, strip_hop_by_hop_and};
use super::validators;

/// Properties of a request that its reply depends on, read before the request is forwarded.
pub(crate) struct RequestConditions {
    pub(crate) method: Method,
    /// All lines of If-None-Match.
    pub(crate) none_match: Vec<HeaderValue>,
    /// The client forbids transformation (no-transform; RFC 9111, section 5.2.1.6).
    pub(crate) no_transform: bool,
}

impl RequestConditions {
    /// Reads the properties. With `may_compress`, validators in the request are adapted afterwards.
    pub(crate) fn read(head: &mut Parts, may_compress: bool) -> Self {
        let none_match = head.headers.get_all(IF_NONE_MATCH);
        let none_match: Vec<_> = none_match.iter().cloned().collect();
        if may_compress {
            validators::state_strongly(&mut head.headers, &none_match);
        }
        Self {
            method: head.method.clone(),
            none_match,
            no_transform: forbids_transform(field_lines(&head.headers, CACHE_CONTROL)),
        }
    }
}

/// Builds the request for the upstream. `version` is the client's.
pub(crate) fn forwarded(
    mut head: Parts,
    body: RequestBody,
    version: Version,
    peer: &Peer,
    client: &ClientIdentity,
) -> Request<RequestBody> {
    strip_hop_by_hop_and(&mut head.headers, |name| client.drops(name));
    client.write_fields(&mut head.headers, peer);
    add_via(&mut head.headers, version);
    // For a GET without a length, hyper assumes that there is no body.
    if matches!(body, RequestBody::Streaming(_)) && !head.headers.contains_key(CONTENT_LENGTH) {
        let chunked = HeaderValue::from_static("chunked");
        head.headers.insert(TRANSFER_ENCODING, chunked);
    }
    Request::from_parts(head, body)
}

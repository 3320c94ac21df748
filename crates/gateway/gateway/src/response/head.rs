//! The head of an upstream's reply: its report of the load is taken, and fields of the connection are removed.

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{HeaderMap, Response, StatusCode, Version};
use posthaste_gateway_config::Watch;

use crate::clock::now;
use crate::request::headers::{normalize_content_length, strip_hop_by_hop};
use crate::request::trailers::RemovedTrailers;
use crate::upstream::body::UpstreamBody;
use crate::upstream::reported_load::ReportedLoad;

/// Records and removes the upstream's report of its busy share, if configured.
pub(crate) fn take_report(watch: &Watch, reported: &ReportedLoad, headers: &mut HeaderMap) {
    if let Watch::Upstream(field) = watch {
        let report = headers.remove(field);
        if let Some(share) = report.as_ref().and_then(|report| report.to_str().ok()) {
            reported.note(share, now());
        }
    }
}

/// Prepares a reply for the client: Content-Length, hop-by-hop fields, version, and the trailers to remove.
pub(crate) fn prepare(reply: &mut Response<UpstreamBody>, removed_trailers: &RemovedTrailers) {
    reply.body_mut().remove_trailers(removed_trailers);
    normalize_content_length(reply.headers_mut());
    let is_426 = reply.status() == StatusCode::UPGRADE_REQUIRED;
    let offered = is_426.then(|| offered_protocols(reply.headers()));
    strip_hop_by_hop(reply.headers_mut());
    for protocols in offered.into_iter().flatten() {
        let upgrade = HeaderValue::from_static("upgrade");
        reply.headers_mut().insert(CONNECTION, upgrade);
        reply.headers_mut().append(UPGRADE, protocols);
    }
    *reply.version_mut() = Version::HTTP_11;
}

/// The protocols that a reply 426 names, which requires them (RFC 9110, section 15.5.22).
fn offered_protocols(headers: &HeaderMap) -> Vec<HeaderValue> {
    headers.get_all(UPGRADE).iter().cloned().collect()
}

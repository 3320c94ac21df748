//! The head of an upstream's reply: its report of the load is taken, and fields of the connection are removed.

use hyper::{HeaderMap, Response, Version};

use crate::clock::now;
use crate::config::Watch;
use crate::request::headers::{normalize_content_length, strip_hop_by_hop};
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

/// Prepares a reply for the client: Content-Length, hop-by-hop fields, version.
pub(crate) fn prepare<B>(reply: &mut Response<B>) {
    normalize_content_length(reply.headers_mut());
    strip_hop_by_hop(reply.headers_mut());
    *reply.version_mut() = Version::HTTP_11;
}

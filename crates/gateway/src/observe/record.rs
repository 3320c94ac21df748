//! The record of a reply's head: time of the upstream, outcome for admission, distributed trace.

use hyper::StatusCode;
use posthaste_units::{Instant, Span};

use super::metrics::GatewayMetrics;
use super::traces::TracedRequest;
use crate::admission::admitted::AdmissionGuard;
use crate::clock::now;
use crate::upstream::error::UpstreamError;

/// Records the upstream's part of a request: sent at `sent`, with this status or failure. `upload` is the time since
/// then that was spent waiting for the client.
pub(crate) fn record(
    metrics: &GatewayMetrics,
    guard: &AdmissionGuard<'_>,
    trace: Option<&TracedRequest<'_>>,
    (sent, upload): (Instant, Span),
    outcome: Result<StatusCode, &UpstreamError>,
) {
    metrics
        .upstream
        .add(now().since(sent).saturating_sub(upload));
    let status = outcome.ok();
    // A failure of the client says nothing about the service.
    if !outcome.err().is_some_and(UpstreamError::is_of_client) {
        guard.record(status, upload);
    }
    if let Some(trace) = trace {
        trace.replied(sent, status);
    }
}

//! The record of a reply's head: time of the upstream, outcome for admission, distributed trace.

use hyper::Response;
use posthaste_units::{Instant, Span};

use crate::admission::admitted::{AdmissionGuard, ServiceEnd};
use crate::clock::now;
use crate::record::grpc_counters::DeadlinePhase;
use crate::record::metrics::GatewayMetrics;
use crate::record::traces::TracedRequest;
use crate::upstream::error::UpstreamError;
use crate::upstream::grpc_outcome::is_failed_call;

/// Records the upstream's part of a request: sent at `sent`, with this reply or failure. `upload` is the time since
/// then that was spent waiting for the client.
pub(super) fn record<B>(
    metrics: &GatewayMetrics,
    guard: &AdmissionGuard<'_>,
    trace: Option<&TracedRequest<'_>>,
    sent: Instant,
    upload: Span,
    outcome: Result<&Response<B>, &UpstreamError>,
) {
    metrics
        .upstream
        .add(now().since(sent).saturating_sub(upload));
    let end = match outcome {
        Ok(reply) if reply.status().is_server_error() || is_failed_call(reply) => {
            Some(ServiceEnd::Failed)
        }
        Ok(_) => Some(ServiceEnd::Served),
        Err(UpstreamError::Deadline) => {
            metrics.grpc.deadline_passed(DeadlinePhase::Reply);
            Some(ServiceEnd::Abandoned)
        }
        // A failure of the client says nothing about the service.
        Err(failure) => (!failure.is_of_client()).then_some(ServiceEnd::Failed),
    };
    if let Some(end) = end {
        guard.record(end, upload);
    }
    if let Some(trace) = trace {
        trace.replied(sent, outcome.ok().map(Response::status));
    }
}

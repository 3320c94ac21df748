//! The outcome of requests, as the rules for ejection see it.

use std::rc::Rc;
use std::sync::Arc;

use hyper::Response;
use posthaste_units::Instant;

use super::SendError;
use super::ejection::Ejector;
use super::endpoint::UpstreamEndpoint;
use super::grpc_outcome::is_failed_call;
use super::members::Member;
use super::target::UpstreamTarget;
use crate::clock::now;
use crate::record::upstream_counters::{EjectionOutcome, UpstreamCounters};
use crate::upload_progress::{Upload, UploadProgress};

/// A request on its way to an endpoint.
pub(super) struct WatchedRequest<'a> {
    ejector: &'a Ejector,
    sent: Instant,
    upload: Upload,
}

impl<'a> WatchedRequest<'a> {
    /// Starts with the request. The time spent waiting for its client does not count.
    pub(super) fn start(ejector: &'a Ejector, progress: Option<Rc<UploadProgress>>) -> Self {
        Self {
            ejector,
            sent: now(),
            upload: Upload::new(progress),
        }
    }

    /// Records the outcome, and ejects endpoints of `targets` accordingly.
    pub(super) fn end<T>(
        self,
        member: &Member,
        outcome: &Result<Response<T>, SendError>,
        targets: &[Arc<UpstreamTarget>],
        counters: &UpstreamCounters,
    ) {
        let (endpoint, now) = (&member.endpoint, now());
        let all = || {
            let endpoints = targets.iter().map(|target| target.endpoints());
            let endpoints = endpoints.flat_map(|endpoints| endpoints.to_vec());
            endpoints.collect::<Vec<_>>()
        };
        match outcome {
            Ok(reply) if !reply.status().is_server_error() && !is_failed_call(reply) => {
                let time = now.since(self.sent).saturating_sub(self.upload.waited());
                if self.ejector.succeeded(endpoint, time, now) {
                    for (endpoint, outcome) in self.ejector.judge(&all(), now) {
                        report(&endpoint, outcome, counters);
                    }
                }
            }
            Err((failure, _)) if failure.says_nothing() => {}
            Ok(_) | Err(_) => {
                if let Some(outcome) = self.ejector.failed(endpoint, now, all) {
                    report(endpoint, outcome, counters);
                }
            }
        }
    }
}

fn report(endpoint: &UpstreamEndpoint, outcome: EjectionOutcome, counters: &UpstreamCounters) {
    counters.ejection(outcome);
    let address = endpoint.address;
    match outcome {
        EjectionOutcome::Failures => tracing::warn!(%address, "ejected: it fails"),
        EjectionOutcome::Slow => tracing::warn!(%address, "ejected: it is slow"),
        EjectionOutcome::NotPermitted => {}
    }
}

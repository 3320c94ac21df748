//! Further attempts of requests that failed (`[route.retry]`).
//!
//! 1. Only idempotent requests without a body are sent again (RFC 9110, section 9.2.2), and none that ask for another
//!    protocol.
//! 2. Reasons are a status in `statuses`, a broken connection or HTTP/2 stream, and with `timeouts` the time limit
//!    `reply`.
//! 3. A reply with `Retry-After` is passed on: the upstream asks for a pause.
//! 4. Each attempt has all time limits for itself and prefers an endpoint that has not had the request.
//! 5. Without budget the client gets the failure or the reply.
//!
//! Requests of which nothing was sent go to the next endpoint in any case; `Upstreams::send_to_any` does that.

use std::sync::Arc;

use hyper::header::{RETRY_AFTER, UPGRADE};
use hyper::{Method, Request, Response};
use posthaste_gateway_config as config;

use super::error::UpstreamError;
use super::retry_budget::RetryBudget;
use crate::clock::now;
use crate::record::upstream_counters::{RetryReason, UpstreamCounters};
use crate::request::body::RequestBody;

/// The rules for further attempts of a route's requests, with their budget.
pub(crate) struct Retries {
    rules: config::Retry,
    budget: Arc<RetryBudget>,
}

impl Retries {
    /// `None` if there are no further attempts.
    pub(super) fn new(rules: &config::Retry, budget: &Arc<RetryBudget>) -> Option<Self> {
        (rules.attempts > 0).then(|| Self {
            rules: rules.clone(),
            budget: budget.clone(),
        })
    }

    /// Maximum attempts after the first.
    pub(crate) fn attempts(&self) -> u32 {
        self.rules.attempts
    }

    pub(crate) fn count_request(&self) {
        self.budget.count_request(now());
    }

    /// Returns true if there is a reason for a further attempt after `outcome`, and budget. Counts it.
    pub(crate) fn permit<T>(
        &self,
        outcome: Result<&Response<T>, &UpstreamError>,
        counters: &UpstreamCounters,
    ) -> bool {
        let Some(reason) = self.reason(outcome) else {
            return false;
        };
        let may = self.budget.take(now(), self.rules.budget);
        if may {
            counters.retried(reason);
        } else {
            counters.retry_refused();
        }
        may
    }

    fn reason<T>(&self, outcome: Result<&Response<T>, &UpstreamError>) -> Option<RetryReason> {
        match outcome {
            Ok(reply) => {
                let is_listed = self.rules.statuses.contains(&reply.status().as_u16());
                let asks_for_pause = reply.headers().contains_key(RETRY_AFTER);
                (is_listed && !asks_for_pause).then_some(RetryReason::Status)
            }
            Err(UpstreamError::Broken(_) | UpstreamError::Closed(_) | UpstreamError::Http2(_)) => {
                Some(RetryReason::Broken)
            }
            Err(UpstreamError::ReplyTimeout) if self.rules.timeouts => Some(RetryReason::Timeout),
            Err(_) => None,
        }
    }
}

/// Returns a copy of an idempotent request without a body (RFC 9110, section 9.2.2).
pub(crate) fn copy_to_retry(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let is_idempotent = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
    );
    let may = is_idempotent && !request.headers().contains_key(UPGRADE);
    may.then(|| copy_without_body(request)).flatten()
}

/// Returns a copy of a request that is safe to send again (RFC 9110, section 9.2.1).
pub(super) fn copy_to_repeat(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    is_safe(request.method(), request.body())
        .then(|| copy_without_body(request))
        .flatten()
}

/// True for a request that is safe to send again (RFC 9110, section 9.2.1), and has no body.
pub(super) fn is_safe(method: &Method, body: &RequestBody) -> bool {
    let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    is_safe && matches!(body, RequestBody::Nothing)
}

fn copy_without_body(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let RequestBody::Nothing = request.body() else {
        return None;
    };
    let mut copy = Request::new(RequestBody::Nothing);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

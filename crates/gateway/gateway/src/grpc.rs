//! gRPC calls: requests over HTTP/2 with a content type of gRPC, and their deadlines.
//!
//! `response::grpc` has their replies. gRPC-Web and gRPC over HTTP/1.1 are forwarded like other requests, without
//! translation.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::header::HeaderName;
use hyper::{HeaderMap, Request, Response, StatusCode, Version};
use posthaste_http::fields::grpc_timeout;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::Rejection;
use crate::record::grpc_counters::DeadlinePhase;
use crate::record::metrics::GatewayMetrics;
use crate::request::media::is_grpc;
use crate::response::body::ReplyBody;
use crate::response::grpc::body::GrpcBody;
use crate::upstream::error::DEADLINE_PASSED;

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// A call in service.
pub(crate) struct GrpcCall {
    metrics: Arc<GatewayMetrics>,
    /// Ready at the deadline. `None` without one.
    deadline: Option<Pin<Box<Sleep>>>,
    checked: Result<(), Rejection>,
}

impl GrpcCall {
    /// Starts a call, if the request is one.
    pub(crate) fn begin<B>(request: &Request<B>, metrics: &Arc<GatewayMetrics>) -> Option<Self> {
        if request.version() != Version::HTTP_2 || !is_grpc(request.headers()) {
            return None;
        }
        let now = Instant::now();
        let (deadline, checked) = match deadline(request.headers(), now) {
            Ok(deadline) => (deadline, Ok(())),
            Err(rejection) => (None, Err(rejection)),
        };
        let checked = checked.and_then(|()| match deadline {
            Some(deadline) if deadline <= now => {
                metrics.grpc.deadline_passed(DeadlinePhase::Arrival);
                Err(Rejection::new(StatusCode::GATEWAY_TIMEOUT, DEADLINE_PASSED))
            }
            _ => Ok(()),
        });
        let timer = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
        Some(Self {
            metrics: metrics.clone(),
            deadline: timer,
            checked,
        })
    }

    /// The time at which the call ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.as_ref().map(|timer| timer.deadline())
    }

    /// Runs the stages of the call until the head of its reply, or drops `stages` at the deadline. The stage that sends
    /// to the upstream ends by itself at the same time, so that its end is recorded.
    pub(crate) async fn until_deadline<T>(
        &mut self,
        mut stages: Pin<&mut impl Future<Output = Result<T, Rejection>>>,
    ) -> Result<T, Rejection> {
        std::mem::replace(&mut self.checked, Ok(()))?;
        let (timer, metrics) = (&mut self.deadline, &self.metrics);
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = stages.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            let is_late = |timer: &mut Pin<Box<Sleep>>| timer.as_mut().poll(cx).is_ready();
            if timer.as_mut().is_some_and(is_late) {
                metrics.grpc.deadline_passed(DeadlinePhase::Reply);
                let late = Rejection::new(StatusCode::GATEWAY_TIMEOUT, DEADLINE_PASSED);
                return Poll::Ready(Err(late));
            }
            Poll::Pending
        })
        .await
    }

    /// Continues the deadline for the body of the reply, and counts the status of the call.
    pub(crate) fn finish(self, reply: Response<ReplyBody>) -> Response<ReplyBody> {
        let (head, body) = reply.into_parts();
        let body = GrpcBody::new(body, &head.headers, self.metrics, self.deadline);
        Response::from_parts(head, ReplyBody::Grpc(Box::new(body)))
    }
}

/// The deadline of a call that begins now. `None` without a timeout, or with one beyond the range of the clock.
fn deadline(headers: &HeaderMap, now: Instant) -> Result<Option<Instant>, Rejection> {
    let mut lines = headers.get_all(TIMEOUT).into_iter();
    let Some(first) = lines.next() else {
        return Ok(None);
    };
    match grpc_timeout(first.as_bytes()) {
        Some(timeout) if lines.next().is_none() => Ok(now.checked_add(timeout)),
        _ => {
            let reason = "grpc-timeout is not one to eight digits and a unit (H, M, S, m, u or n)";
            Err(Rejection::new(StatusCode::BAD_REQUEST, reason))
        }
    }
}

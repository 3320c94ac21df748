//! The body of a reply to a call: its deadline, and the count of its status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_LENGTH;
use tokio::time::Sleep;

use super::status::{DEADLINE_EXCEEDED, fields, index_of};
use super::{DeadlinePhase, PASSED};
use crate::observe::metrics::GatewayMetrics;
use crate::response::body::ReplyBody;
use crate::upstream::error::UpstreamError;

/// The body of a reply to a call.
pub(crate) struct GrpcBody {
    /// Empty after the deadline: the upstream's body is dropped, which resets its stream.
    inner: ReplyBody,
    metrics: Arc<GatewayMetrics>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// The head states a length, so the reply cannot end early with a status.
    has_length: bool,
}

impl GrpcBody {
    pub(super) fn new(
        inner: ReplyBody,
        head: &HeaderMap,
        metrics: Arc<GatewayMetrics>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Self {
        if let Some(status) = index_of(head) {
            metrics.grpc_replied(status);
        }
        Self {
            // A complete reply has no deadline.
            deadline: deadline.filter(|_| !inner.is_end_stream()),
            inner,
            metrics,
            has_length: head.contains_key(CONTENT_LENGTH),
        }
    }

    /// Ends the reply at the deadline.
    fn pass_deadline(&mut self) -> Result<Frame<Bytes>, UpstreamError> {
        self.deadline = None;
        self.inner = ReplyBody::Whole(Bytes::new());
        self.metrics.deadline_passed(DeadlinePhase::Body);
        if self.has_length {
            return Err(UpstreamError::Stalled);
        }
        self.metrics.grpc_replied(DEADLINE_EXCEEDED.into());
        Ok(Frame::trailers(fields(DEADLINE_EXCEEDED, PASSED)))
    }
}

impl Body for GrpcBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = &mut *self;
        // First, because replies that never pause must end, too.
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(this.pass_deadline()));
        }
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(status) = frame.trailers_ref().and_then(index_of) {
                    this.metrics.grpc_replied(status);
                    this.deadline = None;
                }
            }
            None | Some(Err(_)) => this.deadline = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

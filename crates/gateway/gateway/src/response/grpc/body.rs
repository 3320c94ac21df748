//! The body of a reply to a call: its deadline, and the count of its status.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_LENGTH;
use tokio::time::Sleep;

use super::status::{DEADLINE_EXCEEDED, UNAVAILABLE, fields, index_of};
use crate::record::grpc_counters::DeadlinePhase;
use crate::record::metrics::GatewayMetrics;
use crate::upstream::error::{DEADLINE_PASSED, UpstreamError};

/// Message of a call whose stream has paused for too long.
const PAUSED: &str = "the upstream has paused for longer than timeouts.tunnel permits";

/// The body of a reply to a call.
pub(crate) struct GrpcBody<B> {
    /// `None` after the deadline, or a pause that was too long: dropping the upstream's body resets its stream.
    inner: Option<B>,
    metrics: Arc<GatewayMetrics>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// The head states a length, so the reply cannot end early with a status.
    has_length: bool,
}

impl<B: Body> GrpcBody<B> {
    pub(crate) fn new(
        inner: B,
        head: &HeaderMap,
        metrics: Arc<GatewayMetrics>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Self {
        if let Some(status) = index_of(head) {
            metrics.grpc.replied(status);
        }
        Self {
            // A complete reply has no deadline.
            deadline: deadline.filter(|_| !inner.is_end_stream()),
            inner: Some(inner),
            metrics,
            has_length: head.contains_key(CONTENT_LENGTH),
        }
    }

    /// Ends the reply at the deadline.
    fn pass_deadline(&mut self) -> Result<Frame<Bytes>, UpstreamError> {
        self.deadline = None;
        self.inner = None;
        self.metrics.grpc.deadline_passed(DeadlinePhase::Body);
        if self.has_length {
            return Err(UpstreamError::Stalled);
        }
        self.metrics.grpc.replied(DEADLINE_EXCEEDED.into());
        Ok(Frame::trailers(fields(DEADLINE_EXCEEDED, DEADLINE_PASSED)))
    }
}

impl<B: Body<Data = Bytes, Error = UpstreamError> + Unpin> Body for GrpcBody<B> {
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
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        let frame = match ready!(Pin::new(inner).poll_frame(cx)) {
            Some(Err(UpstreamError::Stalled)) if !this.has_length => {
                this.inner = None;
                Some(Ok(Frame::trailers(fields(UNAVAILABLE, PAUSED))))
            }
            frame => frame,
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(status) = frame.trailers_ref().and_then(index_of) {
                    this.metrics.grpc.replied(status);
                    this.deadline = None;
                }
            }
            None | Some(Err(_)) => this.deadline = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.as_ref();
        inner.map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

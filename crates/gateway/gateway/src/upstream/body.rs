//! The body of an upstream's reply, which drives its connection and returns it to the pool.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::UpstreamConnection;
use super::error::UpstreamError;
use super::http2::Http2Body;
use super::pool::PooledGuard;
use super::switched::SwitchedUpstream;
use crate::request::trailers::{RemovedTrailers, clean_reply};

/// The body of an upstream's reply.
pub(crate) enum UpstreamBody {
    Http1(Http1Body),
    Http2(Box<Http2Body>),
}

/// The body of a reply over HTTP/1.1. Its connection returns to the pool after the whole body.
pub(crate) struct Http1Body {
    body: Incoming,
    /// `None` after a timeout.
    connection: Option<UpstreamConnection>,
    pooled: PooledGuard,
    /// The end has arrived. hyper gives no other sign after chunks. Without it such connections would never be reused,
    /// at three times the CPU time per request.
    ended: bool,
    removed_trailers: RemovedTrailers,
}

impl UpstreamBody {
    /// Removes further fields from the trailers.
    pub(crate) fn remove_trailers(&mut self, removed: &RemovedTrailers) {
        match self {
            Self::Http1(body) => body.removed_trailers.clone_from(removed),
            Self::Http2(body) => body.remove_trailers(removed),
        }
    }

    /// Takes the stream after a reply that switches protocols. `None` over HTTP/2.
    pub(crate) fn take_switched(&mut self) -> Option<SwitchedUpstream> {
        match self {
            Self::Http1(body) => body.take_switched(),
            Self::Http2(_) => None,
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        match &mut *self {
            Self::Http1(body) => Pin::new(body).poll_frame(cx),
            Self::Http2(body) => Pin::new(&mut **body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}

impl Http1Body {
    /// Starts the body. `limit` bounds the time between two pieces.
    pub(super) fn new(
        body: Incoming,
        mut connection: UpstreamConnection,
        pooled: PooledGuard,
        limit: Duration,
    ) -> Self {
        connection.begin_wait(limit);
        Self {
            body,
            connection: Some(connection),
            pooled,
            ended: false,
            removed_trailers: None,
        }
    }

    /// Takes the stream after a reply that switches protocols.
    fn take_switched(&mut self) -> Option<SwitchedUpstream> {
        let (stream, ahead) = self.connection.take()?.into_stream()?;
        let in_use = self.pooled.in_use.again();
        Some(SwitchedUpstream::new(stream, ahead, in_use))
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if let Some(connection) = &mut self.connection {
            connection.drive(cx);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = &mut *self;
        let mut outcome = match this.poll_body(cx) {
            Poll::Ready(frame) => frame.map(|frame| frame.map_err(UpstreamError::Broken)),
            Poll::Pending => {
                if let Some(connection) = &mut this.connection {
                    ready!(connection.poll_stalled(cx));
                }
                this.connection = None;
                Some(Err(UpstreamError::Stalled))
            }
        };
        if let Some(connection) = &mut this.connection {
            connection.progressed();
        }
        match &mut outcome {
            None => this.ended = true,
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    // Trailers end a message (RFC 9112, section 7.1).
                    this.ended = true;
                    clean_reply(trailers, &this.removed_trailers)?;
                }
            }
            Some(Err(failure)) => this.pooled.in_use.count_failure(failure),
        }
        Poll::Ready(outcome)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Http1Body {
    /// Closes a connection if its reply was not read completely, because the rest would look like the next head, or if
    /// the request was not sent completely.
    fn drop(&mut self) {
        let is_over = self.is_end_stream();
        if let Some(connection) = self
            .connection
            .take()
            .filter(|connection| is_over && connection.has_sent())
        {
            self.pooled.keep(connection);
        }
    }
}

//! A reply's body whose end is written to the access log.
//!
//! A body is complete if its last piece was given to the connection. The connection may still hold some of it: at most
//! its write buffer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::record::log_entry::LogEntry;
use crate::upstream::error::UpstreamError;

/// A body and the log entry of its request. Writes the line when it is dropped.
pub(crate) struct LoggedBody<B> {
    body: B,
    entry: Box<LogEntry>,
    bytes: u64,
    has_failed: bool,
    has_ended: bool,
}

impl<B: Body> LoggedBody<B> {
    pub(crate) fn new(body: B, entry: Box<LogEntry>) -> Self {
        Self {
            has_ended: body.is_end_stream() || !entry.expects_body(),
            body,
            entry,
            bytes: 0,
            has_failed: false,
        }
    }
}

impl<B: Body<Data = Bytes, Error = UpstreamError> + Unpin> Body for LoggedBody<B> {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            None => this.has_ended = true,
            Some(Ok(frame)) => {
                this.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                this.has_ended = frame.is_trailers() || this.body.is_end_stream();
            }
            Some(Err(_)) => this.has_failed = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for LoggedBody<B> {
    fn drop(&mut self) {
        self.entry
            .write(self.bytes, self.has_ended && !self.has_failed);
    }
}

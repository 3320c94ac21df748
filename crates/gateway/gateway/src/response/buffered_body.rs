//! A reply's body with read-ahead: the buffered pieces come first, then the rest.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::timeout;

use crate::request::body::hint_ahead;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;

/// First bytes of a gzip file and of a Zstandard frame (RFC 1952, RFC 8878).
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b, 8], &[0x28, 0xb5, 0x2f, 0xfd]];

/// A reply's body with the pieces read ahead.
pub(crate) struct BufferedBody {
    gathered: VecDeque<Bytes>,
    length: u64,
    trailers: Option<HeaderMap>,
    /// All data has been buffered.
    is_over: bool,
    rest: UpstreamBody,
}

impl BufferedBody {
    pub(crate) fn new(rest: UpstreamBody) -> Self {
        Self {
            gathered: VecDeque::new(),
            length: 0,
            trailers: None,
            is_over: rest.is_end_stream(),
            rest,
        }
    }

    /// Buffers data that has already arrived, up to `limit` bytes plus one piece.
    pub(crate) async fn gather_ready(&mut self, limit: u64) -> Result<(), UpstreamError> {
        poll_fn(|cx| match self.poll_gather(cx, limit) {
            Poll::Pending => Poll::Ready(Ok(())),
            ready => ready,
        })
        .await
    }

    /// Buffers as [`BufferedBody::gather`], for at most `time`.
    pub(crate) async fn gather_for(
        &mut self,
        time: Duration,
        limit: u64,
    ) -> Result<(), UpstreamError> {
        // Without a timer for bodies that are there.
        if self.is_over || self.length > limit {
            return Ok(());
        }
        let gathered = timeout(time, self.gather(limit)).await;
        gathered.unwrap_or(Ok(()))
    }

    /// Buffers until the end, or until `limit` bytes plus at most one piece have arrived.
    pub(crate) async fn gather(&mut self, limit: u64) -> Result<(), UpstreamError> {
        poll_fn(|cx| self.poll_gather(cx, limit)).await
    }

    fn poll_gather(&mut self, cx: &mut Context<'_>, limit: u64) -> Poll<Result<(), UpstreamError>> {
        while !self.is_over && self.length <= limit {
            match ready!(Pin::new(&mut self.rest).poll_frame(cx)).transpose()? {
                None => self.is_over = true,
                Some(frame) => match frame.into_data() {
                    Ok(data) => {
                        self.length += data.len() as u64;
                        self.gathered.push_back(data);
                        self.is_over = self.rest.is_end_stream();
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Length of the whole body, once all of it is buffered.
    pub(crate) fn whole_length(&self) -> Option<u64> {
        self.is_over.then_some(self.length)
    }

    /// True if the body is compressed already, whether or not its head says so.
    pub(crate) fn is_compressed(&self) -> bool {
        let first = self.gathered.front().map_or(&[][..], |first| first);
        COMPRESSED.iter().any(|mark| first.starts_with(mark))
    }

    /// Returns the body as one piece, if all of it is buffered and it has no trailers.
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        if !self.is_over || self.trailers.is_some() {
            return None;
        }
        if self.gathered.len() > 1 {
            let mut all = BytesMut::with_capacity(self.length as usize);
            self.gathered
                .drain(..)
                .for_each(|piece| all.extend_from_slice(&piece));
            debug_assert_eq!(all.len() as u64, self.length, "buffered bytes are lost");
            self.gathered.push_back(all.freeze());
        }
        Some(self.gathered.front().cloned().unwrap_or_default())
    }
}

impl Body for BufferedBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        if let Some(data) = self.gathered.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if self.is_over {
            Poll::Ready(None)
        } else {
            Pin::new(&mut self.rest).poll_frame(cx)
        }
    }

    fn is_end_stream(&self) -> bool {
        let empty = self.gathered.is_empty() && self.trailers.is_none();
        empty && (self.is_over || self.rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match (self.is_over, &self.trailers) {
            (true, None) => SizeHint::with_exact(0),
            // An exact length would exclude trailers.
            (true, Some(_)) => SizeHint::new(),
            (false, _) => self.rest.size_hint(),
        };
        hint_ahead(&self.gathered, rest)
    }
}

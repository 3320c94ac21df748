//! Bodies of requests on their way to the upstream.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{HeaderMap, StatusCode};
use posthaste_serve::{Incoming, Peer};
use posthaste_units::Size;

use super::error::BodyError;
use super::pause_limit::PauseLimit;
use super::trailers::{RemovedTrailers, clean_request};
use crate::error::Rejection;
use crate::upload_progress::UploadProgress;

/// The body of a request towards the upstream.
pub(crate) enum RequestBody {
    /// No body.
    Nothing,
    /// Forwarded as it arrives.
    Streaming(Box<StreamingBody>),
}

/// A client's body as it arrives, after the pieces that have been read ahead.
pub(crate) struct StreamingBody {
    read: VecDeque<Bytes>,
    rest: Incoming,
    /// Bytes that may still arrive.
    allowed: u64,
    /// Trailers, forwarded after all data.
    trailers: Option<Frame<Bytes>>,
    removed_trailers: RemovedTrailers,
    progress: Rc<UploadProgress>,
    /// The client's time limit for the next piece applies.
    is_timed: bool,
    /// A limit of its own for each pause, instead of the client's.
    pause: Option<Box<PauseLimit>>,
    peer: Rc<Peer>,
}

impl StreamingBody {
    fn new(rest: Incoming, allowed: u64, peer: Rc<Peer>) -> Self {
        Self {
            read: VecDeque::new(),
            rest,
            allowed,
            trailers: None,
            removed_trailers: None,
            progress: Rc::default(),
            is_timed: true,
            pause: None,
            peer,
        }
    }

    /// Reads the next piece and keeps it for forwarding. `None` at the end.
    pub(crate) async fn read_ahead(&mut self) -> Result<Option<&[u8]>, BodyError> {
        let Some(frame) = poll_fn(|cx| self.poll_rest(cx)).await.transpose()? else {
            return Ok(None);
        };
        match frame.into_data() {
            Ok(data) => {
                self.read.push_back(data);
                Ok(self.read.back().map(|data| &**data))
            }
            Err(trailers) => {
                self.trailers = Some(trailers);
                Ok(None)
            }
        }
    }

    /// Polls for the next piece behind those read ahead.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.trailers.take() {
            Some(trailers) => Poll::Ready(Some(Ok(trailers))),
            None => self.poll_received(cx),
        }
    }

    fn poll_received(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.rest).poll_frame(cx);
        // Each piece restarts the timeout for the next one.
        if self.is_timed {
            self.peer.reading(frame.is_pending());
        }
        self.progress.waits(frame.is_pending());
        if let Some(pause) = &mut self.pause
            && pause.poll(frame.is_pending(), cx)
        {
            self.pause = None;
            return Poll::Ready(Some(Err(BodyError::Paused)));
        }
        let mut frame = ready!(frame).transpose().map_err(BodyError::Broken)?;
        if let Some(trailers) = frame.as_mut().and_then(Frame::trailers_mut) {
            clean_request(trailers, &self.removed_trailers)?;
        }
        self.progress.count_piece();
        if let Some(data) = frame.as_ref().and_then(Frame::data_ref) {
            self.progress.count_bytes(data.len());
            self.allowed = reduce(self.allowed, data.len())?;
        }
        Poll::Ready(frame.map(Ok))
    }
}

impl Drop for StreamingBody {
    fn drop(&mut self) {
        self.progress.finish();
    }
}

/// Returns the allowance after `length` more bytes. It never falls below zero.
fn reduce(allowed: u64, length: usize) -> Result<u64, BodyError> {
    allowed.checked_sub(length as u64).ok_or(BodyError::TooLong)
}

impl RequestBody {
    /// Takes the body of a request, limited in length.
    pub(crate) fn receive(body: Incoming, limit: Size, peer: &Rc<Peer>) -> Result<Self, Rejection> {
        if body.is_end_stream() {
            return Ok(Self::Nothing);
        }
        if body.size_hint().lower() > limit.as_bytes() {
            let reason = format!("a request's body has {limit} at most");
            return Err(Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
        let body = StreamingBody::new(body, limit.as_bytes(), peer.clone());
        Ok(Self::Streaming(Box::new(body)))
    }

    /// Puts pieces that were read back in front of the rest.
    pub(crate) fn put_back(&mut self, pieces: Vec<Bytes>, trailers: Option<HeaderMap>) {
        let Self::Streaming(body) = self else {
            debug_assert!(pieces.is_empty(), "no body has pieces");
            return;
        };
        for piece in pieces.into_iter().rev() {
            body.read.push_front(piece);
        }
        if let Some(trailers) = trailers {
            body.trailers = Some(Frame::trailers(trailers));
        }
    }

    /// Removes further fields from the trailers.
    pub(crate) fn remove_trailers(&mut self, removed: &RemovedTrailers) {
        if let Self::Streaming(body) = self {
            body.removed_trailers.clone_from(removed);
        }
    }

    /// Replaces the client's time limit for the next piece, which ends its whole connection, by one that ends only this
    /// body. The client of a stream of messages may pause.
    pub(crate) fn limit_pauses(&mut self, limit: Duration) {
        if let Self::Streaming(body) = self {
            body.is_timed = false;
            body.pause = Some(Box::new(PauseLimit::new(limit)));
        }
    }

    /// Ends the time limit for the next piece. The client of a bidirectional stream may send when it wants.
    pub(crate) fn end_time_limit(&mut self) {
        if let Self::Streaming(body) = self {
            body.is_timed = false;
            body.pause = None;
        }
    }

    /// Progress of the upload, if there is a body.
    pub(crate) fn progress(&self) -> Option<Rc<UploadProgress>> {
        match self {
            Self::Nothing => None,
            Self::Streaming(body) => Some(body.progress.clone()),
        }
    }
}

/// Size hint of a body with some pieces already read.
pub(crate) fn hint_ahead(read: &VecDeque<Bytes>, rest: SizeHint) -> SizeHint {
    let read: u64 = read.iter().map(|piece| piece.len() as u64).sum();
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower() + read);
    if let Some(upper) = rest.upper() {
        hint.set_upper(upper + read);
    }
    hint
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Nothing => Poll::Ready(None),
            Self::Streaming(body) => match body.read.pop_front() {
                Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                None => body.poll_rest(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Streaming(body) => {
                body.read.is_empty() && body.trailers.is_none() && body.rest.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Streaming(body) => hint_ahead(&body.read, body.rest.size_hint()),
        }
    }
}

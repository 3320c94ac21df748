//! Bodies in transit: a client's towards the upstream, and a reply's towards the client.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use posthaste_serve::{Incoming, Peer};
use posthaste_units::{Instant, Span};
use thiserror::Error;

use crate::clock::now;
use crate::decode::{DecodeError, Decoder, PIECE};
use crate::packed::Packed;
use crate::source::Source;
use crate::upstream::{Failure, Passing};

/// The body of a request towards the upstream.
pub(crate) enum Outgoing {
    /// No body.
    Nothing,
    /// Forwarded as it arrives.
    Streaming(Box<Streaming>),
}

/// A client's body as it arrives, after the pieces that have been read ahead.
pub(crate) struct Streaming {
    read: VecDeque<Bytes>,
    rest: Incoming,
    /// Bytes that may still arrive, after decoding.
    allowed: u64,
    /// Removes the content coding of the request.
    decoder: Option<Decoder>,
    /// Received bytes that are not decoded yet.
    coded: Bytes,
    /// Trailers, forwarded after all data.
    trailers: Option<Frame<Bytes>>,
    progress: Rc<Progress>,
    peer: Rc<Peer>,
}

/// Upload progress. Tells a stalled client from a stalled upstream.
#[derive(Default)]
pub(crate) struct Progress {
    /// Set while the gateway waits for the client's next piece.
    waits_since: Cell<Option<Instant>>,
    waited: Cell<Span>,
    pieces: Cell<u64>,
    is_over: Cell<bool>,
}

/// Reasons why a request's body did not reach the upstream completely.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    /// 413.
    #[error("the request's body is longer than allowed")]
    TooLong,
    /// 400: the body ended early, or its chunked framing is invalid.
    #[error("the request's body cannot be read: {0}")]
    Broken(hyper::Error),
    /// 400: the body does not match its Content-Encoding.
    #[error("the request's body is not what its Content-Encoding says: {0}")]
    Coding(io::Error),
    /// 413.
    #[error("the request's body becomes too much when it is decompressed")]
    Explodes,
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLong | Self::Explodes => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) | Self::Coding(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl Streaming {
    pub(crate) fn new(
        rest: Incoming,
        allowed: u64,
        decoder: Option<Decoder>,
        peer: Rc<Peer>,
    ) -> Self {
        Self {
            read: VecDeque::new(),
            rest,
            allowed,
            decoder,
            coded: Bytes::new(),
            trailers: None,
            progress: Rc::default(),
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

    /// Polls for the next piece, decoded.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        while let Some(decoder) = &mut self.decoder {
            let data = if self.coded.is_empty() {
                let frame = ready!(self.poll_raw(cx)).transpose()?;
                match frame.map(Frame::into_data) {
                    Some(Ok(data)) => {
                        self.coded = data;
                        continue;
                    }
                    Some(Err(trailers)) => self.trailers = Some(trailers),
                    None => {}
                }
                let decoder = self.decoder.take();
                decoder.map_or(Ok(Bytes::new()), |mut decoder| decoder.finish(self.allowed))?
            } else {
                let piece = self.coded.split_to(PIECE.min(self.coded.len()));
                decoder.push(&piece, self.allowed)?
            };
            if !data.is_empty() {
                self.allowed = take_off(self.allowed, data.len())?;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        match self.trailers.take() {
            Some(trailers) => Poll::Ready(Some(Ok(trailers))),
            None => self.poll_raw(cx),
        }
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.rest).poll_frame(cx);
        // Each piece restarts the timeout for the next one.
        self.peer.reading(frame.is_pending());
        self.progress.waits(frame.is_pending());
        let frame = ready!(frame).transpose().map_err(BodyError::Broken)?;
        self.progress.pieces.set(self.progress.pieces.get() + 1);
        if let (Some(data), None) = (frame.as_ref().and_then(Frame::data_ref), &self.decoder) {
            self.allowed = take_off(self.allowed, data.len())?;
        }
        Poll::Ready(frame.map(Ok))
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.progress.is_over.set(true);
    }
}

/// Returns the allowance after `length` more bytes.
fn take_off(allowed: u64, length: usize) -> Result<u64, BodyError> {
    allowed.checked_sub(length as u64).ok_or(BodyError::TooLong)
}

impl From<DecodeError> for BodyError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Broken(error) => Self::Coding(error),
            DecodeError::Explodes => Self::Explodes,
            DecodeError::TooLong => Self::TooLong,
        }
    }
}

impl Progress {
    /// True if the gateway waits for the client's next piece.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.waits_since.get().is_some()
    }

    /// Time spent waiting for the client so far.
    pub(crate) fn waited(&self) -> Span {
        let waits = self.waits_since.get().map(|since| now().since(since));
        self.waited.get() + waits.unwrap_or_default()
    }

    /// True if the upload has ended: the body was sent or cannot be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Starts or ends a wait for the client.
    fn waits(&self, waits: bool) {
        match (waits, self.waits_since.get()) {
            (true, None) => self.waits_since.set(Some(now())),
            (false, Some(_)) => {
                self.waited.set(self.waited());
                self.waits_since.set(None);
            }
            _ => {}
        }
    }

    /// Pieces received from the client.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.get()
    }
}

impl Outgoing {
    /// Progress of the upload, if there is a body.
    pub(crate) fn progress(&self) -> Option<Rc<Progress>> {
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

impl Body for Outgoing {
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
                body.read.is_empty()
                    && body.decoder.is_none()
                    && body.trailers.is_none()
                    && body.rest.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Streaming(body) => {
                let rest = match body.decoder {
                    Some(_) => SizeHint::new(),
                    None => body.rest.size_hint(),
                };
                hint_ahead(&body.read, rest)
            }
        }
    }
}

/// The body of a reply towards the client.
pub(crate) enum ReplyBody {
    /// The complete body.
    Whole(Bytes),
    /// The upstream's body, forwarded as it arrives.
    Passing(Passing),
    /// The upstream's body, with a part read ahead.
    Ahead(Box<Source>),
    /// The upstream's body, compressed as it arrives.
    Packed(Box<Packed>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match &mut *self {
            Self::Whole(data) if data.is_empty() => Poll::Ready(None),
            Self::Whole(data) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            Self::Passing(body) => Pin::new(body).poll_frame(cx),
            Self::Ahead(body) => Pin::new(&mut **body).poll_frame(cx),
            Self::Packed(body) => Pin::new(&mut **body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(data) => data.is_empty(),
            Self::Passing(body) => body.is_end_stream(),
            Self::Ahead(body) => body.is_end_stream(),
            Self::Packed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(data) => SizeHint::with_exact(data.len() as u64),
            Self::Passing(body) => body.size_hint(),
            Self::Ahead(body) => body.size_hint(),
            Self::Packed(_) => SizeHint::new(),
        }
    }
}

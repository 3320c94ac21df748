//! Replies in transit to the client, from a handler or for a rejected request.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::connection::timer::ConnectionPhase;
use crate::exchange::in_service::InService;
use crate::framing::check::Rejection;

/// A reply's body. Its request is in service until the end of the body.
pub(crate) struct ReplyBody<B> {
    pub(crate) body: BodySource<B>,
    pub(crate) in_service: InService,
}

/// The source of a body.
pub(crate) enum BodySource<B> {
    /// The handler's body.
    Handler(B),
    /// The reason of a rejection; empty once it is sent.
    Rejection(&'static str),
}

impl<B> From<Rejection> for Response<BodySource<B>> {
    fn from(rejection: Rejection) -> Self {
        let mut reply = Response::new(BodySource::Rejection(rejection.reason));
        *reply.status_mut() = rejection.status;
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        reply.headers_mut().insert(CONTENT_TYPE, kind);
        reply
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for BodySource<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut *self {
            Self::Handler(body) => Pin::new(body).poll_frame(cx),
            Self::Rejection("") => Poll::Ready(None),
            Self::Rejection(reason) => {
                let reason = Bytes::from_static(std::mem::take(reason).as_bytes());
                Poll::Ready(Some(Ok(Frame::data(reason))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Handler(body) => body.is_end_stream(),
            Self::Rejection(reason) => reason.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Handler(body) => body.size_hint(),
            Self::Rejection(reason) => SizeHint::with_exact(reason.len() as u64),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplyBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // A pending body waits for the handler, a ready piece for the client.
        self.in_service.enter(match frame {
            Poll::Pending => ConnectionPhase::Service { reading: false },
            Poll::Ready(_) => ConnectionPhase::Replying,
        });
        let connection = &self.in_service.peer().connection;
        if matches!(frame, Poll::Ready(Some(Err(_)))) && !connection.is_multiplexed() {
            // A client of HTTP/1.0 would take an orderly close for the end of the reply.
            connection.ending.end();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

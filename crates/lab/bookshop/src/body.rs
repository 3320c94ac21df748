//! Bodies of replies: whole, one message with trailers, or a stream that a task of its own request produces.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};

/// The body of a reply.
pub(crate) enum ShopBody {
    /// Known before the head.
    Whole(Full<Bytes>),
    /// One message of gRPC, then trailers.
    Message {
        message: Option<Bytes>,
        trailers: Option<HeaderMap>,
    },
    /// Produced while it is sent.
    Stream(StreamBody),
}

/// A future that produces pieces, and ends with the trailers if there are any.
type Producer = Pin<Box<dyn Future<Output = Option<HeaderMap>>>>;

/// A body that its producer makes piece by piece. The producer runs only while the client can take more.
pub(crate) struct StreamBody {
    producer: Option<Producer>,
    trailers: Option<HeaderMap>,
    outlet: Outlet,
}

/// The end of a body at which its producer hands over pieces.
#[derive(Clone, Default)]
pub(crate) struct Outlet(Rc<RefCell<Option<Bytes>>>);

impl Outlet {
    /// Hands over a piece. Returns when the body has passed it on.
    pub(crate) async fn send(&self, piece: Vec<u8>) {
        debug_assert!(self.0.borrow().is_none(), "one piece at a time");
        *self.0.borrow_mut() = Some(piece.into());
        // The body polls its producer again after it has passed on the piece.
        poll_fn(|_| {
            if self.0.borrow().is_none() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl StreamBody {
    /// Creates a body. `produce` gets the outlet for its pieces.
    pub(crate) fn new<F>(produce: impl FnOnce(Outlet) -> F) -> Self
    where
        F: Future<Output = Option<HeaderMap>> + 'static,
    {
        let outlet = Outlet::default();
        Self {
            producer: Some(Box::pin(produce(outlet.clone()))),
            trailers: None,
            outlet,
        }
    }

    /// The next piece, or the trailers.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if let Some(producer) = &mut self.producer
            && let Poll::Ready(trailers) = producer.as_mut().poll(cx)
        {
            self.producer = None;
            self.trailers = trailers;
        }
        let piece = self.outlet.0.borrow_mut().take();
        match piece {
            Some(piece) => Poll::Ready(Some(Frame::data(piece))),
            None if self.producer.is_some() => Poll::Pending,
            None => Poll::Ready(self.trailers.take().map(Frame::trailers)),
        }
    }
}

impl Body for ShopBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Message { message, trailers } => {
                let frame = match message.take() {
                    Some(message) => Some(Frame::data(message)),
                    None => trailers.take().map(Frame::trailers),
                };
                Poll::Ready(frame.map(Ok))
            }
            Self::Stream(body) => body.poll_frame(cx).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Message { message, trailers } => message.is_none() && trailers.is_none(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Message { .. } | Self::Stream(_) => SizeHint::default(),
        }
    }
}

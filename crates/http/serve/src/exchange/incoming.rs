//! The body of a request, as it arrives or as a whole.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::connection::state::ConnectionState;

/// A request's body. Notifies its connection of the end, because only then the connection can carry another request.
pub struct Incoming {
    body: IncomingBody,
    /// For HTTP/1, until the end has been read. HTTP/2 streams end by themselves.
    connection: Option<Rc<ConnectionState>>,
    is_http2: bool,
}

/// The content of a body.
enum IncomingBody {
    /// As it arrives.
    Arriving(hyper::body::Incoming),
    /// Read before; empty once it is passed on.
    #[cfg(feature = "http3")]
    Whole(Bytes),
}

impl IncomingBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match self {
            Self::Arriving(body) => Pin::new(body).poll_frame(cx),
            #[cfg(feature = "http3")]
            Self::Whole(body) => {
                let body = std::mem::take(body);
                Poll::Ready((!body.is_empty()).then(|| Ok(Frame::data(body))))
            }
        }
    }
}

impl Incoming {
    /// A body that was read before, as with HTTP/3.
    #[cfg(feature = "http3")]
    pub(crate) const fn whole(body: Bytes) -> Self {
        Self {
            body: IncomingBody::Whole(body),
            connection: None,
            is_http2: false,
        }
    }

    pub(crate) fn new(body: hyper::body::Incoming, connection: &Rc<ConnectionState>) -> Self {
        let is_empty = body.is_end_stream();
        connection.requests.set_body(!is_empty);
        let waits = !is_empty && !connection.is_multiplexed();
        Self {
            connection: waits.then(|| connection.clone()),
            is_http2: connection.is_multiplexed(),
            body: IncomingBody::Arriving(body),
        }
    }

    /// The body has been read completely.
    fn ended(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.requests.finish_body();
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = ready!(self.body.poll(cx));
        // hyper reports a stream that its client has reset with NO_ERROR as if it had ended. hyper drops the exchange as
        // soon as this is pending.
        if self.is_http2 && frame.is_none() && !self.is_end_stream() {
            return Poll::Pending;
        }
        let is_last = match &frame {
            // Trailers are the last frame.
            Some(Ok(frame)) => frame.is_trailers() || self.is_end_stream(),
            Some(Err(_)) => false,
            None => true,
        };
        if is_last {
            self.ended();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            IncomingBody::Arriving(body) => body.is_end_stream(),
            #[cfg(feature = "http3")]
            IncomingBody::Whole(body) => body.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            IncomingBody::Arriving(body) => body.size_hint(),
            #[cfg(feature = "http3")]
            IncomingBody::Whole(body) => SizeHint::with_exact(body.len() as u64),
        }
    }
}

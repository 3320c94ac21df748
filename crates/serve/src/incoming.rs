//! The body of a request, as it arrives.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::connection::ConnectionState;

/// A request's body. Notifies its connection of the end, because only then the connection can carry another request.
pub struct Incoming {
    body: hyper::body::Incoming,
    /// For HTTP/1, until the end has been read. HTTP/2 streams end by themselves.
    connection: Option<Rc<ConnectionState>>,
    is_http2: bool,
}

impl Incoming {
    pub(crate) fn new(body: hyper::body::Incoming, connection: &Rc<ConnectionState>) -> Self {
        let is_empty = body.is_end_stream();
        connection.set_body(!is_empty);
        let waits = !is_empty && !connection.is_http2();
        Self {
            connection: waits.then(|| connection.clone()),
            is_http2: connection.is_http2(),
            body,
        }
    }

    /// The body has been read completely.
    fn ended(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.finish_body();
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
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        // hyper reports a stream that its client has reset with NO_ERROR as if it had ended. hyper drops the exchange as
        // soon as this is pending.
        if self.is_http2 && frame.is_none() && !self.body.is_end_stream() {
            return Poll::Pending;
        }
        let is_last = match &frame {
            // Trailers are the last frame.
            Some(Ok(frame)) => frame.is_trailers() || self.body.is_end_stream(),
            Some(Err(_)) => false,
            None => true,
        };
        if is_last {
            self.ended();
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

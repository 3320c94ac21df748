//! A handler that echoes requests or answers by path, slowly on request.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Request, Response};
use posthaste_serve::{Handler, Incoming, Peer, read_body};
use posthaste_units::Dscp;

/// `/block` is blocking its thread, until the test sets this to false.
pub(crate) static BLOCKS: AtomicBool = AtomicBool::new(false);

/// `/drain` has started. Used by one test only.
pub(crate) static DRAINS: AtomicBool = AtomicBool::new(false);

/// Duration of `/slow`, longer than the short limits.
const SLOW: Duration = Duration::from_millis(1500);

/// Replies with the request's body or the content of the path, with the mark from the request's field.
pub(crate) struct Echo {
    pub(crate) served: Cell<usize>,
}

/// A body in one piece.
pub(crate) struct Whole(pub(crate) Option<Bytes>);

/// The replies of `Echo`.
pub(crate) enum EchoBody {
    Whole(Whole),
    /// This number of pieces of 1 MiB, ready at once.
    Pieces(usize),
    /// This number of pieces, one every 200 ms.
    Dripping(usize, Pin<Box<tokio::time::Sleep>>),
}

fn pause() -> Pin<Box<tokio::time::Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(200)))
}

impl Body for EchoBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(whole) => Pin::new(whole).poll_frame(cx),
            Self::Pieces(0) | Self::Dripping(0, _) => Poll::Ready(None),
            Self::Pieces(left) => {
                *left -= 1;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; 1 << 20])))))
            }
            Self::Dripping(left, timer) => {
                ready!(timer.as_mut().poll(cx));
                (*left, *timer) = (*left - 1, pause());
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"drop")))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Pieces(_) | Self::Dripping(..) => SizeHint::new(),
        }
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |data| data.len() as u64))
    }
}

impl Handler for Echo {
    type Body = EchoBody;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<EchoBody> {
        self.served.set(self.served.get() + 1);
        let mark = request.headers().get("mark");
        let mark = mark.map(|mark| mark.to_str().unwrap().parse::<Dscp>().unwrap());
        let mut response = answer(request, &peer).await;
        if let Some(mark) = mark {
            response.extensions_mut().insert(mark);
        }
        response
    }
}

async fn answer(request: Request<Incoming>, peer: &Peer) -> Response<EchoBody> {
    let path = request.uri().path().to_owned();
    if path == "/drops" {
        return Response::new(EchoBody::Dripping(8, pause()));
    }
    if let Some(pieces) = path.strip_prefix("/pieces/") {
        return Response::new(EchoBody::Pieces(pieces.parse().unwrap()));
    }
    if let Some(length) = path.strip_prefix("/bytes/") {
        let bytes = Bytes::from(vec![b'x'; length.parse().unwrap()]);
        return Response::new(EchoBody::Whole(Whole(Some(bytes))));
    }
    let (status, body) = match &*path {
        "/big" => (200, Bytes::from(vec![b'x'; 32 << 20])),
        "/slow" | "/drain" => {
            DRAINS.fetch_or(path == "/drain", SeqCst);
            tokio::time::sleep(SLOW).await;
            (200, Bytes::from_static(b"slept"))
        }
        "/never" => std::future::pending().await,
        // Blocks the whole thread.
        "/block" => {
            BLOCKS.store(true, SeqCst);
            while BLOCKS.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            (200, Bytes::from_static(b"blocked"))
        }
        _ => match read_body(request.into_body(), 1000, peer).await {
            Ok(body) => (200, body),
            Err(error) => (400, Bytes::from(error.to_string())),
        },
    };
    let mut response = Response::new(EchoBody::Whole(Whole(Some(body))));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
    response
}

//! Bodies of replies on their way to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::buffered_body::BufferedBody;
use super::compressed_body::CompressedBody;
use super::grpc::body::GrpcBody;
use super::logged_body::LoggedBody;
use crate::record::log_entry::LogEntry;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;

/// The body of a reply towards the client.
pub(crate) enum ReplyBody {
    /// The complete body.
    Whole(Bytes),
    /// The upstream's body, forwarded as it arrives.
    Upstream(UpstreamBody),
    /// The upstream's body, with a part read ahead.
    Buffered(Box<BufferedBody>),
    /// The upstream's body, compressed as it arrives.
    Compressed(Box<CompressedBody>),
    /// The reply to a gRPC call, with its deadline.
    Grpc(Box<GrpcBody<Self>>),
    /// One of the others, whose end is written to the access log.
    Logged(Box<LoggedBody<Self>>),
}

impl ReplyBody {
    /// Writes the end of the body to the access log, if there is an entry.
    pub(crate) fn logged(self, entry: Option<Box<LogEntry>>) -> Self {
        match entry {
            Some(entry) => Self::Logged(Box::new(LoggedBody::new(self, entry))),
            None => self,
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        match &mut *self {
            Self::Whole(data) if data.is_empty() => Poll::Ready(None),
            Self::Whole(data) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(data))))),
            Self::Upstream(body) => Pin::new(body).poll_frame(cx),
            Self::Buffered(body) => Pin::new(&mut **body).poll_frame(cx),
            Self::Compressed(body) => Pin::new(&mut **body).poll_frame(cx),
            Self::Grpc(body) => Pin::new(&mut **body).poll_frame(cx),
            Self::Logged(body) => Pin::new(&mut **body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(data) => data.is_empty(),
            Self::Upstream(body) => body.is_end_stream(),
            Self::Buffered(body) => body.is_end_stream(),
            Self::Compressed(body) => body.is_end_stream(),
            Self::Grpc(body) => body.is_end_stream(),
            Self::Logged(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(data) => SizeHint::with_exact(data.len() as u64),
            Self::Upstream(body) => body.size_hint(),
            Self::Buffered(body) => body.size_hint(),
            Self::Compressed(_) => SizeHint::new(),
            Self::Grpc(body) => body.size_hint(),
            Self::Logged(body) => body.size_hint(),
        }
    }
}

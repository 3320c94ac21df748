//! A reply's body, compressed as it arrives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame};

use super::buffered_body::BufferedBody;
use super::codec::StreamCompressor;
use super::worker::CompressionJob;
use crate::upstream::error::UpstreamError;

/// The compressed form of a body of unknown length.
pub(crate) struct CompressedBody {
    source: BufferedBody,
    /// `None` after the end of the body.
    work: Option<(Box<StreamCompressor>, CompressionJob)>,
    trailers: Option<HeaderMap>,
    /// The encoder holds bytes that the client cannot decode yet.
    held: bool,
}

impl CompressedBody {
    pub(crate) fn new(job: CompressionJob, source: BufferedBody) -> io::Result<Self> {
        let compressor = Box::new(StreamCompressor::new(job.step)?);
        Ok(Self {
            source,
            work: Some((compressor, job)),
            trailers: None,
            held: false,
        })
    }

    /// Polls for the next compressed piece. `None` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        while let Some((compressor, job)) = &mut self.work {
            let out = match Pin::new(&mut self.source).poll_frame(cx)? {
                // The next piece may take long: flush, so that the client can decode all bytes so far.
                Poll::Pending if self.held => {
                    self.held = false;
                    let out = job.part(0, || compressor.flush());
                    return Poll::Ready(out.map(Some));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.finish(),
                Poll::Ready(Some(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.held = true;
                        job.part(data.len(), || compressor.push(&data))
                    }
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        continue;
                    }
                },
            };
            let out = out?;
            if !out.is_empty() {
                return Poll::Ready(Ok(Some(out)));
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Ends the stream and returns the rest of the output.
    fn finish(&mut self) -> Result<Bytes, UpstreamError> {
        let Some((compressor, mut job)) = self.work.take() else {
            return Ok(Bytes::new());
        };
        let rest = job.part(0, || compressor.finish())?;
        job.finish();
        Ok(rest)
    }
}

impl Body for CompressedBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let frame = match ready!(self.poll_piece(cx))? {
            Some(data) => Some(Frame::data(data)),
            None => self.trailers.take().map(Frame::trailers),
        };
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.work.is_none() && self.trailers.is_none()
    }
}

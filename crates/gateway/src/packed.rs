//! A reply's body, compressed as it arrives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame};

use crate::codec::Packer;
use crate::source::Source;
use crate::upstream::Failure;
use crate::worker::CompressionJob;

/// The compressed form of a body of unknown length.
pub(crate) struct Packed {
    source: Source,
    /// `None` after the end of the body.
    work: Option<(Box<Packer>, CompressionJob)>,
    trailers: Option<HeaderMap>,
    /// The encoder holds bytes that the client cannot decode yet.
    held: bool,
}

impl Packed {
    pub(crate) fn new(job: CompressionJob, source: Source) -> io::Result<Self> {
        let packer = Box::new(Packer::new(job.step)?);
        Ok(Self {
            source,
            work: Some((packer, job)),
            trailers: None,
            held: false,
        })
    }

    /// Polls for the next compressed piece. `None` at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failure>> {
        while let Some((packer, job)) = &mut self.work {
            let out = match Pin::new(&mut self.source).poll_frame(cx)? {
                // The next piece may take long: flush, so that the client can decode all bytes so far.
                Poll::Pending if self.held => {
                    self.held = false;
                    let out = job.part(0, || packer.flush());
                    return Poll::Ready(out.map(Some));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.finish(),
                Poll::Ready(Some(frame)) => match frame.into_data() {
                    Ok(data) => {
                        self.held = true;
                        job.part(data.len(), || packer.push(&data))
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
    fn finish(&mut self) -> Result<Bytes, Failure> {
        let Some((packer, mut job)) = self.work.take() else {
            return Ok(Bytes::new());
        };
        let rest = job.part(0, || packer.finish())?;
        job.finish();
        Ok(rest)
    }
}

impl Body for Packed {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
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

//! The body of a reply over HTTP/2.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_LENGTH;
use tokio::time::Instant;

use super::connection::Lease;
use super::upload::RunningUpload;
use crate::request::trailers::{RemovedTrailers, clean_reply};
use crate::upload_progress::UploadProgress;
use crate::upstream::error::UpstreamError;
use crate::upstream::in_use::InUseGuard;

/// The body of a reply. Dropping it before its end resets the stream.
pub(crate) struct Http2Body {
    stream: RecvStream,
    /// Bytes to come, if the head states them. `h2` checks that they come.
    left: Option<u64>,
    /// All data has arrived; trailers may follow.
    is_data_over: bool,
    is_over: bool,
    lease: Lease,
    upload: Option<RunningUpload>,
    waits: WaitLimits,
    in_use: InUseGuard,
    removed_trailers: RemovedTrailers,
}

/// Limits on the time without progress.
pub(in crate::upstream) struct WaitLimits {
    /// For the next piece of the reply.
    pub(in crate::upstream) reply_body: Duration,
    /// For either side while the client's upload continues and its next piece is not there.
    pub(in crate::upstream) both: Duration,
    pub(in crate::upstream) progress: Option<Rc<UploadProgress>>,
    pieces: u64,
    /// Start of the time in which both sides were silent.
    silent_since: Option<Instant>,
}

impl WaitLimits {
    pub(in crate::upstream) fn new(
        reply_body: Duration,
        both: Duration,
        progress: Option<Rc<UploadProgress>>,
    ) -> Self {
        Self {
            reply_body,
            both,
            pieces: 0,
            progress,
            silent_since: None,
        }
    }

    /// True if the wait goes on although no piece of the reply has arrived within its limit.
    fn goes_on(&mut self, upload: Option<&RunningUpload>) -> bool {
        let running = upload.is_some_and(|upload| !upload.is_over());
        let Some(progress) = self.progress.as_ref().filter(|_| running) else {
            return false;
        };
        if std::mem::replace(&mut self.pieces, progress.pieces()) != progress.pieces() {
            self.silent_since = None;
            return true;
        }
        if !progress.waits_for_client() {
            return false;
        }
        let now = Instant::now();
        let since = self.silent_since;
        let since = *self.silent_since.insert(since.unwrap_or(now));
        // The first wait has ended already.
        now.duration_since(since) + self.reply_body < self.both
    }
}

impl Http2Body {
    pub(in crate::upstream) fn new(
        stream: RecvStream,
        headers: &HeaderMap,
        mut lease: Lease,
        upload: Option<RunningUpload>,
        waits: WaitLimits,
        in_use: InUseGuard,
    ) -> Self {
        let left = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        lease.timeout.begin(waits.reply_body);
        Self {
            // A reply to HEAD has no content, although it states a length.
            left: if stream.is_end_stream() {
                Some(0)
            } else {
                left
            },
            stream,
            is_data_over: false,
            is_over: false,
            lease,
            upload,
            waits,
            in_use,
            removed_trailers: None,
        }
    }

    /// Removes further fields from the trailers.
    pub(crate) fn remove_trailers(&mut self, removed: &RemovedTrailers) {
        self.removed_trailers.clone_from(removed);
    }

    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.is_data_over {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    let left = self.left.as_mut();
                    left.into_iter().for_each(|left| {
                        *left = left.saturating_sub(data.len() as u64);
                    });
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.is_data_over = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx));
        self.is_over = trailers.is_ok();
        Poll::Ready(
            trailers
                .transpose()
                .map(|trailers| trailers.map(Frame::trailers)),
        )
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.lease.timeout.poll(cx));
            if !self.waits.goes_on(self.upload.as_ref()) {
                return Poll::Ready(());
            }
            self.lease.timeout.renew();
        }
    }

    /// The error of a reply that ended early.
    fn failure(&self, error: h2::Error) -> UpstreamError {
        let client = self.upload.as_ref().and_then(RunningUpload::take_failure);
        client.map_or(UpstreamError::Http2(error), UpstreamError::Client)
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        let outcome = match this.poll_stream(cx) {
            Poll::Ready(frame) => frame.map(|frame| {
                let mut frame = frame.map_err(|error| this.failure(error))?;
                if let Some(trailers) = frame.trailers_mut() {
                    clean_reply(trailers, &this.removed_trailers)?;
                }
                Ok(frame)
            }),
            Poll::Pending => {
                ready!(this.poll_stalled(cx));
                this.lease.retire();
                Some(Err(UpstreamError::Stalled))
            }
        };
        this.lease.timeout.renew();
        this.waits.silent_since = None;
        if let Some(Err(failure)) = &outcome
            && failure.of_client().is_none()
        {
            this.in_use.count_failure(failure);
        }
        Poll::Ready(outcome)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

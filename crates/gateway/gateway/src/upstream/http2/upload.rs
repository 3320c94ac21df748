//! The body of a request over HTTP/2.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use hyper::HeaderMap;
use hyper::body::Body as _;
use tokio::task::AbortHandle;

use crate::request::body::RequestBody;
use crate::request::error::BodyError;

/// Bytes of a body that are kept to send them again if the upstream has refused the request.
const KEPT: usize = 64 << 10;

/// The body of a request on its way to the upstream.
pub(super) struct Upload {
    body: RequestBody,
    stream: SendStream<Bytes>,
    /// A piece that waits for space in the window, and true if it is the last.
    waiting: Option<(Bytes, bool)>,
    /// `None` if the body has become too long to be sent again.
    kept: Option<SentPieces>,
    is_over: bool,
}

/// The part of a body that was sent.
#[derive(Default)]
struct SentPieces {
    data: Vec<Bytes>,
    length: usize,
    trailers: Option<HeaderMap>,
}

/// An upload that continues after the head of the reply. Dropping it ends it.
pub(in crate::upstream) struct RunningUpload {
    task: AbortHandle,
    failure: Rc<RefCell<Option<BodyError>>>,
}

impl Upload {
    pub(super) fn new(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        Self {
            // The end of the stream was sent with the head.
            is_over: body.is_end_stream(),
            body,
            stream,
            waiting: None,
            kept: Some(SentPieces::default()),
        }
    }

    /// Sends as much as the client has sent and the window allows. Ready at the end, or if the upstream takes no more;
    /// the reply reports the reason. An error of the client resets the stream.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while !self.is_over {
            if let Some((_, is_last)) = self.waiting {
                if self.stream.capacity() == 0 {
                    match ready!(self.stream.poll_capacity(cx)) {
                        Some(Ok(0)) => continue,
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => break,
                    }
                }
                let (data, _) = self.waiting.take().expect("a piece is waiting");
                if self.stream.send_data(data, is_last).is_err() || is_last {
                    break;
                }
            }
            let piece = ready!(Pin::new(&mut self.body).poll_frame(cx));
            if self.send_frame(piece, cx)? {
                break;
            }
        }
        self.is_over = true;
        Poll::Ready(Ok(()))
    }

    /// Sends a frame, or stores it until the window has space. True at the end.
    fn send_frame(
        &mut self,
        frame: Option<Result<hyper::body::Frame<Bytes>, BodyError>>,
        cx: &mut Context<'_>,
    ) -> Result<bool, BodyError> {
        let frame = match frame {
            None => {
                let _ = self.stream.send_data(Bytes::new(), true);
                return Ok(true);
            }
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.stream.send_reset(Reason::CANCEL);
                self.is_over = true;
                return Err(error);
            }
        };
        match frame.into_data() {
            Ok(data) => {
                let is_last = self.body.is_end_stream();
                self.keep(&data);
                if data.is_empty() {
                    return Ok(self.stream.send_data(data, is_last).is_err() || is_last);
                }
                // One byte, so that waiting bodies do not claim the window of the connection.
                self.stream.reserve_capacity(1);
                self.waiting = Some((data, is_last));
                Ok(false)
            }
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                if let Some(kept) = &mut self.kept {
                    kept.trailers = Some(trailers.clone());
                }
                self.stream.reserve_capacity(0);
                let sent = self.stream.send_trailers(trailers);
                // If the upstream has ended the stream, the reply reports the reason.
                if sent.is_err() && self.stream.poll_reset(cx).is_pending() {
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    self.is_over = true;
                    return Err(BodyError::Trailers);
                }
                Ok(true)
            }
        }
    }

    fn keep(&mut self, data: &Bytes) {
        if let Some(kept) = &mut self.kept {
            kept.length += data.len();
            kept.data.push(data.clone());
            if kept.length > KEPT {
                self.kept = None;
            }
        }
    }

    /// Returns the body as it was before it was sent. `None` if it was too long to be kept.
    pub(super) fn into_unsent(self) -> Option<RequestBody> {
        let (mut body, kept) = (self.body, self.kept?);
        body.put_back(kept.data, kept.trailers);
        Some(body)
    }

    /// Continues in a task, if there is more to send.
    pub(super) fn continue_in_task(mut self) -> Option<RunningUpload> {
        if self.is_over {
            return None;
        }
        self.kept = None;
        self.body.end_time_limit();
        let failure = Rc::<RefCell<Option<BodyError>>>::default();
        let failed = failure.clone();
        let task = tokio::task::spawn_local(async move {
            let sent = std::future::poll_fn(|cx| self.poll(cx)).await;
            if let Err(error) = sent {
                failed.replace(Some(error));
            }
        });
        Some(RunningUpload {
            task: task.abort_handle(),
            failure,
        })
    }
}

impl RunningUpload {
    /// The client's error that has ended the upload.
    pub(super) fn take_failure(&self) -> Option<BodyError> {
        self.failure.take()
    }

    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for RunningUpload {
    fn drop(&mut self) {
        self.task.abort();
    }
}

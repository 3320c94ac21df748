//! A call in progress: its messages as they arrive, and its count.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use posthaste_http::grpc::{Code, FrameError, MessageReader, Status};
use posthaste_serve::Incoming;
use prost::Message;
use tokio::time::{Instant, timeout};

use super::is_late;
use crate::service::{MAX_BODY, ShopService};

/// The requests of a call.
pub(super) struct Messages {
    body: Incoming,
    reader: MessageReader,
    piece: Bytes,
    wait: Duration,
}

impl Messages {
    /// Creates the stream of requests in `body`. Each may take `wait` to arrive.
    pub(super) fn new(body: Incoming, wait: Duration) -> Self {
        Self {
            body,
            reader: MessageReader::new(MAX_BODY),
            piece: Bytes::new(),
            wait,
        }
    }

    /// Returns the next request, or `None` at the end.
    pub(super) async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        let wait = self.wait;
        let message = timeout(wait, self.read()).await.map_err(|_| {
            let message = format!("no message and no end within {} s", wait.as_secs());
            Status::new(Code::DeadlineExceeded, message)
        })??;
        let decode = |data: Vec<u8>| {
            M::decode(&*data).map_err(|error| {
                Status::new(Code::Internal, format!("a message cannot be read: {error}"))
            })
        };
        message.map(decode).transpose()
    }

    /// Returns the only request of a method without a stream of requests.
    pub(super) async fn one<M: Message + Default>(&mut self) -> Result<M, Status> {
        let number = |message: &str| Status::new(Code::Unimplemented, message);
        let first = self.next().await?;
        let first = first.ok_or_else(|| number("the method needs a request: there is none"))?;
        match self.read().await? {
            None => Ok(first),
            Some(_) => Err(number("the method takes one request: there are more")),
        }
    }

    async fn read(&mut self) -> Result<Option<Vec<u8>>, Status> {
        loop {
            let mut bytes = &self.piece[..];
            let message = self.reader.next(&mut bytes);
            let used = self.piece.len() - bytes.len();
            self.piece.advance(used);
            match message.map_err(refuse)? {
                Some(message) if message.compressed => {
                    let message = "messages must not be compressed here: send them with grpc-encoding identity";
                    return Err(Status::new(Code::Unimplemented, message));
                }
                Some(message) => return Ok(Some(message.data)),
                None => {}
            }
            match self.body.frame().await {
                None => {
                    self.reader.end().map_err(refuse)?;
                    return Ok(None);
                }
                Some(Ok(frame)) => self.piece = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => {
                    return Err(Status::new(Code::Cancelled, "the client ended the call"));
                }
            }
        }
    }
}

fn refuse(error: FrameError) -> Status {
    let code = match error {
        FrameError::TooLong { .. } => Code::ResourceExhausted,
        FrameError::Flag(_) | FrameError::Cut => Code::Internal,
    };
    Status::new(code, error.to_string())
}

/// Counts the status of a call. One that is dropped before its end was cancelled by its client or exceeded its
/// deadline.
pub(super) struct CallCount {
    shop: Rc<ShopService>,
    deadline: Option<Instant>,
    code: Option<Code>,
}

impl CallCount {
    pub(super) fn begin(shop: &Rc<ShopService>, deadline: Option<Instant>) -> Self {
        Self {
            shop: shop.clone(),
            deadline,
            code: None,
        }
    }

    pub(super) fn end(mut self, code: Code) {
        self.code = Some(code);
    }
}

impl Drop for CallCount {
    fn drop(&mut self) {
        let dropped = if is_late(self.deadline) {
            Code::DeadlineExceeded
        } else {
            Code::Cancelled
        };
        let code = self.code.unwrap_or(dropped);
        self.shop.metrics().count_call(code);
    }
}

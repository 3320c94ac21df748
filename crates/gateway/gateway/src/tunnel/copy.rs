//! A tunnel: copies bytes between a client and an upstream, in both directions.
//!
//! An idle tunnel has no buffer. A direction reads into a buffer of its thread and writes at once. Only the part that
//! the receiver does not take is kept, and nothing is read until it is written. The end of one side is passed on, and
//! the other direction continues (half-close). One timer per tunnel is reset only when it expires.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use posthaste_serve::SwitchedStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::open::OpenTunnel;
use crate::record::tunnels::TunnelEnd;
use crate::upstream::switched::SwitchedUpstream;

/// Size of the buffer of a thread.
const BUFFER: usize = 64 << 10;

/// Reads of one direction before other tasks get their turn.
const READS: u32 = 8;

thread_local! {
    static BUFFERS: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into());
}

/// A tunnel. Returns the client's stream for an orderly end.
pub(crate) struct Tunnel {
    /// `None` after the end.
    sides: Option<(SwitchedStream, SwitchedUpstream)>,
    to_upstream: Flow,
    to_client: Flow,
    /// The client's side ended before the upstream's.
    is_clients_end: bool,
    limit: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
    open: OpenTunnel,
}

/// One direction of a tunnel.
#[derive(Default)]
struct Flow {
    /// Bytes that the receiver has not taken yet.
    rest: Bytes,
    phase: FlowPhase,
    /// Written and not flushed, as far as the receiver has a buffer.
    is_unflushed: bool,
    /// Bytes written since they were counted.
    written: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FlowPhase {
    #[default]
    Open,
    /// The sender has ended; the receiver is to learn of it after the rest.
    Ending,
    Over,
}

/// The failed side of a direction.
#[derive(Debug)]
enum FlowError {
    Sender(io::Error),
    Receiver(io::Error),
}

impl Tunnel {
    pub(crate) fn new(
        client: SwitchedStream,
        mut upstream: SwitchedUpstream,
        limit: Duration,
        open: OpenTunnel,
    ) -> Self {
        let to_client = Flow {
            rest: std::mem::take(&mut upstream.ahead),
            ..Flow::default()
        };
        Self {
            sides: Some((client, upstream)),
            to_upstream: Flow::default(),
            to_client,
            is_clients_end: false,
            limit,
            last: Instant::now(),
            timer: Box::pin(sleep(limit)),
            open,
        }
    }

    /// Moves bytes in both directions. Ready at the end of both, or at a failure.
    fn poll_flows(&mut self, cx: &mut Context<'_>) -> Poll<TunnelEnd> {
        let Some((client, upstream)) = &mut self.sides else {
            return Poll::Pending;
        };
        let upstream = &mut upstream.stream;
        let up = self.to_upstream.poll(client, upstream, cx);
        let has_client_ended = self.to_upstream.phase != FlowPhase::Open;
        if has_client_ended && self.to_client.phase == FlowPhase::Open {
            self.is_clients_end = true;
        }
        let down = self.to_client.poll(upstream, client, cx);
        let has_upstream_ended = self.to_client.phase != FlowPhase::Open;
        let written = (self.to_upstream.written, self.to_client.written);
        if written != (0, 0) {
            self.open.metrics.tunnels.passed(written.0, written.1);
            (self.to_upstream.written, self.to_client.written) = (0, 0);
            self.last = Instant::now();
        }
        let of_client = |error: io::Error| {
            // The limit of writes of an HTTP/2 stream.
            if error.kind() == io::ErrorKind::TimedOut {
                TunnelEnd::ClientStalled
            } else if has_client_ended {
                TunnelEnd::ClientClosed
            } else {
                TunnelEnd::ClientError
            }
        };
        let of_upstream = |_: io::Error| {
            if has_upstream_ended {
                TunnelEnd::UpstreamClosed
            } else {
                TunnelEnd::UpstreamError
            }
        };
        match (up, down) {
            (Poll::Ready(Err(FlowError::Sender(error))), _)
            | (_, Poll::Ready(Err(FlowError::Receiver(error)))) => Poll::Ready(of_client(error)),
            (Poll::Ready(Err(FlowError::Receiver(error))), _)
            | (_, Poll::Ready(Err(FlowError::Sender(error)))) => Poll::Ready(of_upstream(error)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(if self.is_clients_end {
                TunnelEnd::ClientClosed
            } else {
                TunnelEnd::UpstreamClosed
            }),
            _ => Poll::Pending,
        }
    }

    /// Ready after the limit without data.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let end = self.last + self.limit;
            if end <= Instant::now() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(end);
        }
    }

    /// Closes both sides. A side gets a reset if data for it is missing.
    fn close(&mut self, end: TunnelEnd) -> Option<SwitchedStream> {
        let (client, upstream) = self.sides.take()?;
        self.open.end = match end {
            // The end of the grace time fails the streams of an HTTP/2 connection.
            TunnelEnd::ClientError | TunnelEnd::UpstreamError if client.is_draining() => {
                TunnelEnd::Stopped
            }
            // Often, a side that has its peer's end closes without a word.
            TunnelEnd::ClientError if self.to_client.phase == FlowPhase::Over => {
                TunnelEnd::UpstreamClosed
            }
            TunnelEnd::UpstreamError if self.to_upstream.phase == FlowPhase::Over => {
                TunnelEnd::ClientClosed
            }
            _ => end,
        };
        let delivered = (
            self.to_client.is_delivered(),
            self.to_upstream.is_delivered(),
        );
        let (to_client, to_upstream) = match end {
            TunnelEnd::ClientError => (false, false),
            TunnelEnd::ClientStalled => (false, delivered.1),
            TunnelEnd::UpstreamError => (false, true),
            _ => delivered,
        };
        if to_upstream {
            drop(upstream);
        } else {
            upstream.stream.reset();
        }
        if to_client {
            Some(client)
        } else {
            client.reset();
            None
        }
    }
}

impl Future for Tunnel {
    type Output = Option<SwitchedStream>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let end = match this.poll_flows(cx) {
            Poll::Ready(end) => end,
            Poll::Pending => {
                ready!(this.poll_idle(cx));
                TunnelEnd::Idle
            }
        };
        Poll::Ready(this.close(end))
    }
}

impl Drop for Tunnel {
    /// Dropped before its end: the server has ended the connection. A side must not take a close for the end of its
    /// data if some is missing.
    fn drop(&mut self) {
        let Some((client, upstream)) = self.sides.take() else {
            return;
        };
        self.open.end = if client.is_draining() {
            TunnelEnd::Stopped
        } else {
            TunnelEnd::ClientStalled
        };
        if !self.to_upstream.is_delivered() {
            upstream.stream.reset();
        }
        if !self.to_client.is_delivered() {
            client.reset();
        }
    }
}

impl Flow {
    /// True if the receiver has all data that was read.
    fn is_delivered(&self) -> bool {
        self.phase == FlowPhase::Over || (self.rest.is_empty() && !self.is_unflushed)
    }

    /// Moves bytes until one side has to be waited for. Ready at the end, and at a failure.
    fn poll(
        &mut self,
        sender: &mut (impl AsyncRead + Unpin),
        receiver: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), FlowError>> {
        for _ in 0..READS {
            while !self.rest.is_empty() {
                let rest = &*self.rest;
                let length = ready!(poll_write(receiver, rest, cx))?;
                self.wrote(length);
                self.rest.advance(length);
            }
            match self.phase {
                FlowPhase::Open => {}
                FlowPhase::Ending => {
                    let ended = ready!(Pin::new(&mut *receiver).poll_shutdown(cx));
                    ended.map_err(FlowError::Receiver)?;
                    self.phase = FlowPhase::Over;
                    return Poll::Ready(Ok(()));
                }
                FlowPhase::Over => return Poll::Ready(Ok(())),
            }
            // Drops the buffer of an earlier rest.
            self.rest = Bytes::new();
            let read = BUFFERS.with_borrow_mut(|buffer| {
                let mut read = ReadBuf::new(buffer);
                ready!(Pin::new(&mut *sender).poll_read(cx, &mut read))
                    .map_err(FlowError::Sender)?;
                match read.filled() {
                    [] => self.phase = FlowPhase::Ending,
                    data => self.pass(data, receiver, cx)?,
                }
                Poll::Ready(Ok(()))
            });
            match read {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if self.is_unflushed {
                        let flushed = ready!(Pin::new(&mut *receiver).poll_flush(cx));
                        flushed.map_err(FlowError::Receiver)?;
                        self.is_unflushed = false;
                    }
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes `data`, and keeps the part that the receiver does not take.
    fn pass(
        &mut self,
        mut data: &[u8],
        receiver: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Result<(), FlowError> {
        while !data.is_empty() {
            match poll_write(receiver, data, cx) {
                Poll::Ready(length) => {
                    let length = length?;
                    self.wrote(length);
                    data = &data[length..];
                }
                Poll::Pending => {
                    self.rest = Bytes::copy_from_slice(data);
                    break;
                }
            }
        }
        Ok(())
    }

    fn wrote(&mut self, length: usize) {
        self.written += length as u64;
        self.is_unflushed = true;
    }
}

/// Writes at least one byte.
fn poll_write(
    receiver: &mut (impl AsyncWrite + Unpin),
    data: &[u8],
    cx: &mut Context<'_>,
) -> Poll<Result<usize, FlowError>> {
    Poll::Ready(match ready!(Pin::new(receiver).poll_write(cx, data)) {
        Ok(0) => Err(FlowError::Receiver(io::ErrorKind::WriteZero.into())),
        Ok(length) => Ok(length),
        Err(error) => Err(FlowError::Receiver(error)),
    })
}

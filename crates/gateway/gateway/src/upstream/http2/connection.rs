//! One HTTP/2 connection to an upstream.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use posthaste_serve::{Stream, spawn_task};
use posthaste_units::Dscp;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::upstream::idle_timeout::IdleTimeout;

/// Maximum number of requests in flight on one connection, if the upstream allows as many.
pub(in crate::upstream) const MAX_STREAMS: usize = 100;

/// Bytes of a reply that may arrive before its client has taken earlier ones.
const STREAM_WINDOW: u32 = 512 << 10;

/// The same for the connection. Enough for all its streams, so that slow clients cannot block the others.
const CONNECTION_WINDOW: u32 = MAX_STREAMS as u32 * STREAM_WINDOW;

/// Maximum size of a reply's head.
const MAX_HEAD: u32 = 64 << 10;

/// Time for an unused connection to send its last frames.
const CLOSING: Duration = Duration::from_secs(1);

/// Time after which unacknowledged data means that the upstream's machine is gone. Until then the connection takes
/// further requests, although each of them times out.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// A connection to an upstream. It closes when it is dropped and its last request has ended.
pub(in crate::upstream) struct Http2Connection {
    /// Mark of the connection's packets, fixed for its lifetime.
    pub(in crate::upstream) mark: Dscp,
    sender: SendRequest<Bytes>,
    in_flight: Cell<usize>,
    unused_since: Cell<Instant>,
    /// Takes no further requests: the upstream did not answer one in time.
    is_retired: Cell<bool>,
    /// Timers of ended requests. Resetting a timer costs less than creating one.
    timers: RefCell<Vec<IdleTimeout>>,
    closing: Rc<Notify>,
}

/// The place of one request on a connection.
pub(in crate::upstream) struct Lease {
    connection: Rc<Http2Connection>,
    pub(in crate::upstream) timeout: IdleTimeout,
}

impl Http2Connection {
    /// Starts HTTP/2 over `stream`, whose packets have `mark`. `limit` applies until the upstream states its own.
    pub(in crate::upstream) async fn new(
        stream: Stream,
        mark: Dscp,
        limit: usize,
    ) -> Result<Self, h2::Error> {
        // A failure leaves the kernel's own limit.
        let _ = stream.limit_unacknowledged(UNACKNOWLEDGED);
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_max_send_streams(limit)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD);
        let (sender, connection) = builder.handshake(stream).await?;
        let closing = Rc::<Notify>::default();
        spawn_task(drive(connection, closing.clone()));
        Ok(Self {
            mark,
            sender,
            in_flight: Cell::new(0),
            unused_since: Cell::new(Instant::now()),
            is_retired: Cell::new(false),
            timers: RefCell::default(),
            closing,
        })
    }

    /// True if the connection accepts requests: neither side has closed it or announced that (GOAWAY).
    pub(in crate::upstream) fn is_open(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        // A new handle is never pending.
        let ready = self.sender.clone().poll_ready(&mut context);
        !self.is_retired.get() && matches!(ready, std::task::Poll::Ready(Ok(())))
    }

    /// Maximum number of requests in flight.
    pub(in crate::upstream) fn limit(&self) -> usize {
        self.sender.current_max_send_streams().clamp(1, MAX_STREAMS)
    }

    /// Takes a place for a request, if one is free.
    pub(in crate::upstream) fn lease(self: &Rc<Self>) -> Option<Lease> {
        (self.in_flight.get() < self.limit()).then(|| {
            self.in_flight.set(self.in_flight.get() + 1);
            Lease {
                timeout: self.timers.borrow_mut().pop().unwrap_or_default(),
                connection: self.clone(),
            }
        })
    }

    /// True if no request has used the connection for `limit`.
    pub(in crate::upstream) fn is_unused(&self, limit: Duration) -> bool {
        self.in_flight.get() == 0 && self.unused_since.get().elapsed() > limit
    }
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        debug_assert_eq!(self.in_flight.get(), 0, "a request uses the connection");
        self.closing.notify_one();
    }
}

impl Lease {
    /// A handle that sends one request.
    pub(in crate::upstream) fn sender(&self) -> SendRequest<Bytes> {
        self.connection.sender.clone()
    }

    /// Excludes the connection from further requests. Those in flight continue.
    pub(in crate::upstream) fn retire(&self) {
        self.connection.is_retired.set(true);
    }

    pub(in crate::upstream) fn connection(&self) -> &Rc<Http2Connection> {
        &self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let connection = &self.connection;
        debug_assert!(connection.in_flight.get() > 0, "a place is returned twice");
        connection.in_flight.set(connection.in_flight.get() - 1);
        connection.unused_since.set(Instant::now());
        let timeout = std::mem::take(&mut self.timeout);
        connection.timers.borrow_mut().push(timeout);
    }
}

/// Drives a connection until it closes. Requests report its errors.
async fn drive(mut connection: Connection<Stream, Bytes>, closing: Rc<Notify>) {
    tokio::select! {
        biased;
        ended = &mut connection => drop(ended),
        () = closing.notified() => {
            // Polled again without a handle left, it says GOAWAY and closes.
            let _ = timeout(CLOSING, connection).await;
        }
    }
}

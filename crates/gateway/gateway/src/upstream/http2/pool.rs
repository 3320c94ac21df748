//! The HTTP/2 connections of one thread to one upstream.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use posthaste_units::Dscp;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use super::connection::{Http2Connection, Lease, MAX_STREAMS};
use crate::upstream::error::UpstreamError;

/// Time for which an upstream that has selected HTTP/1.1 is not offered HTTP/2 again.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The HTTP/2 connections of one thread to one upstream.
pub(in crate::upstream) struct Http2Pool {
    open: RefCell<Vec<Rc<Http2Connection>>>,
    /// Limit of requests in flight that the last connection has stated. New connections begin with it.
    limit: Cell<usize>,
    /// Held while a connection is opened. Other requests wait for that one.
    connecting: Mutex<()>,
    /// Number of failed attempts, and the failure of the last.
    failures: Cell<u64>,
    failure: RefCell<Option<Failure>>,
    /// The upstream has selected HTTP/1.1.
    selected_http1: Cell<Option<Instant>>,
}

/// A failure that requests share.
enum Failure {
    Io(io::ErrorKind, Option<i32>),
    Timeout,
    NotSelected,
}

/// The right to open a connection.
pub(in crate::upstream) struct ConnectionOpening<'p> {
    pool: &'p Http2Pool,
    _lock: MutexGuard<'p, ()>,
}

impl Default for Http2Pool {
    fn default() -> Self {
        Self {
            open: RefCell::default(),
            limit: Cell::new(MAX_STREAMS),
            connecting: Mutex::default(),
            failures: Cell::new(0),
            failure: RefCell::default(),
            selected_http1: Cell::new(None),
        }
    }
}

impl Http2Pool {
    /// Limit of requests in flight for a new connection.
    pub(in crate::upstream) fn limit(&self) -> usize {
        self.limit.get()
    }

    /// Takes a place on an open connection with this mark, other than `avoided`. Closed connections leave.
    pub(in crate::upstream) fn take(
        &self,
        mark: Dscp,
        avoided: Option<&Rc<Http2Connection>>,
    ) -> Option<Lease> {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| connection.is_open());
        if let Some(last) = open.last() {
            self.limit.set(last.limit());
        }
        let mut fitting = open.iter().filter(|connection| {
            connection.mark == mark
                && avoided.is_none_or(|avoided| !Rc::ptr_eq(connection, avoided))
        });
        // The first with a free place, so that surplus connections age at the end.
        fitting.find_map(Http2Connection::lease)
    }

    /// Waits for the right to open a connection, at most `limit`. Fails if another request's attempt has failed
    /// meanwhile.
    pub(in crate::upstream) async fn begin_opening(
        &self,
        limit: Duration,
    ) -> Result<ConnectionOpening<'_>, UpstreamError> {
        let before = self.failures.get();
        let lock = timeout(limit, self.connecting.lock()).await;
        let lock = lock.map_err(|_| UpstreamError::ConnectTimeout)?;
        match &*self.failure.borrow() {
            Some(failure) if self.failures.get() != before => Err(failure.to_error()),
            _ => Ok(ConnectionOpening {
                pool: self,
                _lock: lock,
            }),
        }
    }

    /// Records that the upstream has selected HTTP/1.1.
    pub(in crate::upstream) fn remember_http1(&self) {
        self.selected_http1.set(Some(Instant::now()));
    }

    /// True if the upstream has selected HTTP/1.1 recently.
    pub(in crate::upstream) fn selects_http1(&self) -> bool {
        let since = self.selected_http1.get();
        since.is_some_and(|since| since.elapsed() < REMEMBERED)
    }

    /// Closes all connections as soon as their last request has ended.
    pub(in crate::upstream) fn retire(&self) {
        drop(self.open.take());
    }

    /// Closes connections unused for `limit`.
    pub(in crate::upstream) fn close_unused(&self, limit: Duration) {
        let stays = |connection: &mut Rc<Http2Connection>| {
            connection.is_open() && !connection.is_unused(limit)
        };
        let gone: Vec<_> = self
            .open
            .borrow_mut()
            .extract_if(.., |connection| !stays(connection))
            .collect();
        drop(gone);
    }
}

impl ConnectionOpening<'_> {
    /// Adds a new connection and takes a place on it.
    pub(in crate::upstream) fn opened(self, connection: Http2Connection) -> Lease {
        let connection = Rc::new(connection);
        self.pool.open.borrow_mut().push(connection.clone());
        let lease = connection.lease();
        lease.expect("a new connection has a place")
    }

    /// Ends the opening with a failure, also for the requests that wait for it.
    pub(in crate::upstream) fn failed(self, error: &UpstreamError) {
        let pool = self.pool;
        pool.failures.set(pool.failures.get() + 1);
        pool.failure.replace(Failure::from_error(error));
    }
}

impl Failure {
    /// `None` for failures that say nothing about the next attempt.
    fn from_error(error: &UpstreamError) -> Option<Self> {
        match error {
            UpstreamError::Connect(error) => Some(Self::Io(error.kind(), error.raw_os_error())),
            UpstreamError::ConnectTimeout => Some(Self::Timeout),
            UpstreamError::NotHttp2 => Some(Self::NotSelected),
            _ => None,
        }
    }

    fn to_error(&self) -> UpstreamError {
        match self {
            Self::Io(_, Some(code)) => UpstreamError::Connect(io::Error::from_raw_os_error(*code)),
            Self::Io(kind, None) => UpstreamError::Connect((*kind).into()),
            Self::Timeout => UpstreamError::ConnectTimeout,
            Self::NotSelected => UpstreamError::NotHttp2,
        }
    }
}

//! The connection pool of one thread and one endpoint.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use posthaste_units::Dscp;
use tokio::time::Instant;

use super::connection::UpstreamConnection;
use super::http2::pool::Http2Pool;
use super::in_use::{InUse, InUseGuard};
use crate::record::metrics::GatewayMetrics;

/// Time for which an unannounced close is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The connections of one thread to one endpoint.
pub(super) struct Pool {
    /// Ordered by last use, so that surplus connections age at the front.
    idle: RefCell<Vec<(UpstreamConnection, Instant)>>,
    in_use: Rc<InUse>,
    /// Configurations that use the pool.
    configurations: Cell<usize>,
    /// The last time at which the upstream had closed a kept connection without announcing it.
    closed_kept: Cell<Option<Instant>>,
    /// The address is gone: connections are not kept.
    is_retired: Cell<bool>,
    pub(super) http2: Http2Pool,
}

/// Handle for returning a connection to its pool. Counts as one in use while it exists.
pub(super) struct PooledGuard {
    pool: Rc<Pool>,
    pub(super) in_use: InUseGuard,
}

impl Pool {
    pub(super) fn new(metrics: Arc<GatewayMetrics>) -> Self {
        Self {
            idle: RefCell::default(),
            in_use: Rc::new(InUse::new(metrics)),
            configurations: Cell::new(1),
            closed_kept: Cell::new(None),
            is_retired: Cell::new(false),
            http2: Http2Pool::default(),
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use.get()
    }

    /// Counts one more in use.
    pub(super) fn begin_use(self: &Rc<Self>) -> PooledGuard {
        PooledGuard {
            pool: self.clone(),
            in_use: self.in_use.begin(),
        }
    }

    /// Takes a usable connection with this mark. Closed connections are dropped.
    pub(super) fn take(&self, cx: &mut Context<'_>, mark: Dscp) -> Option<UpstreamConnection> {
        loop {
            // Taken out before it is polled, since polling may drop a value that accesses this list.
            let (mut connection, since) = self.latest(mark)?;
            let may_be_open = |limit: Duration| since.elapsed() < limit;
            if connection.kept_for.is_none_or(may_be_open) {
                if connection.is_ready(cx) {
                    return Some(connection);
                }
                self.note_close();
            }
        }
    }

    /// Records that the upstream has closed a kept connection without announcing it.
    pub(super) fn note_close(&self) {
        self.closed_kept.set(Some(Instant::now()));
    }

    /// True if the upstream has done that in the last 10 minutes.
    pub(super) fn closes_kept(&self) -> bool {
        let is_recent = |at: Instant| at.elapsed() < REMEMBERED;
        self.closed_kept.get().is_some_and(is_recent)
    }

    fn latest(&self, mark: Dscp) -> Option<(UpstreamConnection, Instant)> {
        let mut idle = self.idle.borrow_mut();
        let index = idle
            .iter()
            .rposition(|(connection, _)| connection.mark == mark)?;
        Some(idle.remove(index))
    }

    /// Closes the connection with this mark that has been unused longest: another has been opened in its place.
    pub(super) fn close_oldest(&self, mark: Dscp) {
        let mut idle = self.idle.borrow_mut();
        let index = idle
            .iter()
            .position(|(connection, _)| connection.mark == mark);
        let closed = index.map(|index| idle.remove(index));
        drop(idle);
        drop(closed);
    }

    /// Closes connections unused for `limit`, or for as long as their upstream keeps them.
    pub(super) fn close_unused(&self, limit: Duration) {
        let mut idle = self.idle.borrow_mut();
        let old = idle.partition_point(|(_, since)| since.elapsed() > limit);
        let mut closed: Vec<_> = idle.drain(..old).collect();
        closed.extend(idle.extract_if(.., |(connection, since)| {
            connection
                .kept_for
                .is_some_and(|limit| since.elapsed() >= limit)
        }));
        drop(idle);
        drop(closed);
        self.http2.close_unused(limit);
    }

    /// Stays in use by one more configuration.
    pub(super) fn stay(self: Rc<Self>) -> Rc<Self> {
        self.configurations.set(self.configurations.get() + 1);
        self
    }

    /// Ends the use by one configuration. The last one closes the connections.
    pub(super) fn leave(&self) {
        debug_assert!(self.configurations.get() > 0, "a configuration ends twice");
        self.configurations.set(self.configurations.get() - 1);
        if self.configurations.get() == 0 {
            self.retire();
        }
    }

    /// Closes all unused connections, and those in use as soon as they are returned.
    pub(super) fn retire(&self) {
        self.is_retired.set(true);
        drop(self.idle.take());
        self.http2.retire();
    }
}

impl PooledGuard {
    /// Keeps an unused connection for the next request.
    pub(super) fn keep(&self, connection: UpstreamConnection) {
        if self.pool.is_retired.get() || connection.kept_for == Some(Duration::ZERO) {
            return;
        }
        let (mut idle, now) = (self.pool.idle.borrow_mut(), Instant::now());
        debug_assert!(
            idle.last().is_none_or(|(_, since)| *since <= now),
            "idle connections are not in the order of their last use"
        );
        idle.push((connection, now));
    }
}

//! The connection pool of one thread and one upstream, with the number in use.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use posthaste_units::Dscp;

use super::Failure;
use super::line::Line;
use crate::context::GatewayContext;

/// The connections of one thread to one upstream.
pub(super) struct Pool {
    context: Arc<GatewayContext>,
    /// Ordered by last use, so that surplus connections age at the front.
    idle: RefCell<Vec<(Line, Instant)>>,
    in_use: Cell<usize>,
}

/// Handle for returning a connection to its pool. Counts as one in use while it exists.
pub(super) struct Home(Rc<Pool>);

impl Pool {
    pub(super) fn new(context: Arc<GatewayContext>) -> Self {
        Self {
            context,
            idle: RefCell::default(),
            in_use: Cell::new(0),
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use.get()
    }

    /// Counts one more in use.
    pub(super) fn enter(self: &Rc<Self>) -> Home {
        self.in_use.set(self.in_use.get() + 1);
        Home(self.clone())
    }

    /// Takes a usable connection with this mark. Closed connections are dropped.
    pub(super) fn take(&self, cx: &mut Context<'_>, mark: Dscp) -> Option<Line> {
        loop {
            // Taken out before it is polled, since polling may drop a value that accesses this list.
            let mut line = self.latest(mark)?;
            if line.is_ready(cx) {
                return Some(line);
            }
        }
    }

    fn latest(&self, mark: Dscp) -> Option<Line> {
        let mut idle = self.idle.borrow_mut();
        let place = idle.iter().rposition(|(line, _)| line.mark == mark)?;
        Some(idle.remove(place).0)
    }

    /// Closes connections unused for `limit`.
    pub(super) fn close_unused(&self, limit: Duration) {
        let mut idle = self.idle.borrow_mut();
        let old = idle.partition_point(|(_, since)| since.elapsed() > limit);
        let closed: Vec<_> = idle.drain(..old).collect();
        drop(idle);
        drop(closed);
    }
}

impl Home {
    /// Counts a failure of the upstream.
    pub(super) fn count(&self, failure: &Failure) {
        self.0.context.metrics.failed(failure);
    }

    /// Keeps an unused connection for the next request.
    pub(super) fn keep(&self, line: Line) {
        self.0.idle.borrow_mut().push((line, Instant::now()));
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.0.in_use.set(self.0.in_use.get() - 1);
    }
}

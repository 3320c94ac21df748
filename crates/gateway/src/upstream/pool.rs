//! One thread's unused connections to an upstream, and how many are in use.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use posthaste_units::Dscp;

use super::Failure;
use super::line::Line;
use crate::house::House;

/// One thread's connections to one upstream.
pub(super) struct Pool {
    house: Arc<House>,
    /// The one used last is the last: those that are needed no more grow old at the front.
    idle: RefCell<Vec<(Line, Instant)>>,
    in_use: Cell<usize>,
}

/// The place a connection returns to; counts as one in use while it lives.
pub(super) struct Home(Rc<Pool>);

impl Pool {
    pub(super) fn new(house: Arc<House>) -> Self {
        Self {
            house,
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

    /// A connection of that mark that takes a request; those found closed are dropped.
    pub(super) fn take(&self, cx: &mut Context<'_>, mark: Dscp) -> Option<Line> {
        loop {
            // Out of the list before it is polled: polling may drop what looks here.
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

    /// Closes what has not been used for `limit`.
    pub(super) fn close_unused(&self, limit: Duration) {
        let mut idle = self.idle.borrow_mut();
        let old = idle.partition_point(|(_, since)| since.elapsed() > limit);
        let closed: Vec<_> = idle.drain(..old).collect();
        drop(idle);
        drop(closed);
    }
}

impl Home {
    /// Counts what the upstream failed to do.
    pub(super) fn count(&self, failure: &Failure) {
        self.0.house.metrics.failed(failure);
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

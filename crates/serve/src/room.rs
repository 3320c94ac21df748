//! Eviction of unused connections when descriptors or connection slots are exhausted.
//!
//! First the oldest connection without a complete request is closed, then the longest idle one. Otherwise silent
//! clients could block all others until `timeouts.idle` expires.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tokio::task::yield_now;

use crate::connection::Connection;
use crate::counters::add_one;
use crate::worker::Thread;

/// Maximum number of idle connections per search, so that closing many does not need a full search for each.
const FOUND: usize = 64;

/// Connections of one thread that may be closed for others.
#[derive(Default)]
pub(crate) struct Room {
    /// Connections without a complete request, by number and so by age.
    silent: RefCell<BTreeMap<u64, Rc<Connection>>>,
    /// Idle connections found by the last search, the next to close in front.
    idle: RefCell<VecDeque<(u64, Rc<Connection>)>>,
}

impl Room {
    /// Adds an accepted connection.
    pub(crate) fn enter(&self, number: u64, connection: Rc<Connection>) {
        self.silent.borrow_mut().insert(number, connection);
    }

    /// Removes a connection that has sent its first request or has closed.
    pub(crate) fn is_silent_no_more(&self, number: u64) {
        self.silent.borrow_mut().remove(&number);
    }

    /// Returns the oldest connection without a request.
    fn silent(&self, now: u32) -> Option<(u64, Rc<Connection>)> {
        let silent = self.silent.borrow();
        let mut oldest = silent.iter();
        let found = oldest.find(|(_, connection)| connection.is_silent(now))?;
        Some((*found.0, found.1.clone()))
    }

    /// Returns the longest idle connection.
    fn idle(&self, thread: &Thread) -> Option<(u64, Rc<Connection>)> {
        let now = thread.ticks.get();
        let mut found = self.idle.borrow_mut();
        // A found connection may have been used since.
        let next = |found: &mut VecDeque<(u64, Rc<Connection>)>| {
            std::iter::from_fn(|| found.pop_front())
                .find(|(_, connection)| connection.idle_since(now).is_some())
        };
        next(&mut found).or_else(|| {
            *found = search(thread, now);
            next(&mut found)
        })
    }
}

/// Closes an unused connection of this thread and waits until its descriptor is free. False if every one is in use.
///
/// With `only_silent`, connections that ever sent a request are kept.
pub(crate) async fn make_room(thread: &Thread, only_silent: bool) -> bool {
    let silent = thread.room.silent(thread.ticks.get());
    let unused = match only_silent {
        true => silent,
        false => silent.or_else(|| thread.room.idle(thread)),
    };
    let Some((number, connection)) = unused else {
        return false;
    };
    add_one(&thread.server.counters.closed_for_room);
    connection.end();
    while thread.connections.borrow().contains_key(&number) {
        yield_now().await;
    }
    true
}

/// Finds the longest idle connections, in this order.
fn search(thread: &Thread, now: u32) -> VecDeque<(u64, Rc<Connection>)> {
    let connections = thread.connections.borrow();
    let mut idle: Vec<_> = connections
        .iter()
        .filter_map(|(number, connection)| {
            Some(((connection.idle_since(now)?, *number), connection))
        })
        .collect();
    if idle.len() > FOUND {
        idle.select_nth_unstable_by_key(FOUND, |(order, _)| *order);
        idle.truncate(FOUND);
    }
    idle.sort_unstable_by_key(|(order, _)| *order);
    idle.into_iter()
        .map(|((_, number), connection)| (number, connection.clone()))
        .collect()
}

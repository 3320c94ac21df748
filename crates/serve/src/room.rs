//! Room for another connection when descriptors or places are used up: a connection that nobody uses is closed.
//!
//! First the oldest that never sent a complete request, then the one that has been idle for the longest. Without this,
//! clients that connect and say nothing lock all others out until `timeouts.idle` is over.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::task::yield_now;

use crate::connection::{Connection, Unused};
use crate::counters::add_one;
use crate::worker::Thread;

/// Connections that one search finds at most, so that closing many does not cost a search of all for each.
const FOUND: usize = 64;

/// Unused connections of one thread that the last search found, the next to close in front.
#[derive(Default)]
pub(crate) struct Room(RefCell<VecDeque<(u64, Rc<Connection>)>>);

/// Closes an unused connection of this thread and waits until its descriptor is free; false where each is in use.
///
/// With `only_silent`, none that ever sent a request is closed.
pub(crate) async fn make_room(thread: &Thread, only_silent: bool) -> bool {
    let Some((number, connection)) = next(thread, only_silent) else {
        return false;
    };
    add_one(&thread.server.counters.closed_for_room);
    connection.end();
    while thread.connections.borrow().contains_key(&number) {
        yield_now().await;
    }
    true
}

/// The next to close.
fn next(thread: &Thread, only_silent: bool) -> Option<(u64, Rc<Connection>)> {
    let now = thread.ticks.get();
    let is_wanted = |unused: Option<Unused>| match unused {
        Some(Unused::Silent(_)) => true,
        Some(Unused::Idle(_)) => !only_silent,
        None => false,
    };
    let mut found = thread.room.0.borrow_mut();
    for searched in [false, true] {
        if searched {
            *found = search(thread, now);
        }
        while let Some((number, connection)) = found.pop_front() {
            // It may have been used since it was found.
            if is_wanted(connection.unused(now)) && connection.is_quiet() {
                return Some((number, connection));
            }
        }
    }
    None
}

/// The first connections in the order in which they are to be closed; the silent and the idle are not mixed.
fn search(thread: &Thread, now: u32) -> VecDeque<(u64, Rc<Connection>)> {
    let connections = thread.connections.borrow();
    let mut unused: Vec<_> = connections
        .iter()
        .filter_map(|(number, connection)| Some(((connection.unused(now)?, *number), connection)))
        .collect();
    if unused.len() > FOUND {
        unused.select_nth_unstable_by_key(FOUND, |(order, _)| *order);
        unused.truncate(FOUND);
    }
    unused.sort_unstable_by_key(|(order, _)| *order);
    let has_silent = matches!(unused.first(), Some(((Unused::Silent(_), _), _)));
    unused
        .into_iter()
        .filter(|((kind, _), _)| matches!(kind, Unused::Silent(_)) == has_silent)
        .map(|((_, number), connection)| (number, connection.clone()))
        .collect()
}

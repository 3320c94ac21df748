//! Candidates for eviction: unused connections, to be closed when descriptors or connection slots are exhausted.
//!
//! First the oldest connection without a complete request is closed, then the longest idle one. Otherwise silent
//! clients could block all others until `timeouts.idle` expires.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::connection::state::ConnectionState;

/// Maximum number of idle connections per search, so that closing many does not need a full search for each.
const FOUND: usize = 64;

/// A connection with its number.
pub(crate) type Numbered = (u64, Rc<ConnectionState>);

/// Connections of one thread that may be closed for others.
#[derive(Default)]
pub(crate) struct EvictionCandidates {
    /// Connections without a complete request, by number and so by age.
    silent: RefCell<BTreeMap<u64, Rc<ConnectionState>>>,
    /// Idle connections found by the last search, the next to close in front.
    idle: RefCell<VecDeque<Numbered>>,
}

impl EvictionCandidates {
    /// Adds an accepted connection.
    pub(crate) fn insert(&self, number: u64, connection: Rc<ConnectionState>) {
        let before = self.silent.borrow_mut().insert(number, connection);
        debug_assert!(before.is_none(), "two connections have the number {number}");
    }

    /// Removes a connection that has sent its first request or has closed.
    pub(crate) fn remove_silent(&self, number: u64) {
        self.silent.borrow_mut().remove(&number);
    }

    /// Returns the oldest connection without a request.
    pub(crate) fn silent(&self, now: u32) -> Option<Numbered> {
        let silent = self.silent.borrow();
        let mut oldest = silent.iter();
        let found = oldest.find(|(_, connection)| connection.is_silent(now))?;
        Some((*found.0, found.1.clone()))
    }

    /// Returns the longest idle one of `connections`.
    pub(crate) fn idle(
        &self,
        connections: &BTreeMap<u64, Rc<ConnectionState>>,
        now: u32,
    ) -> Option<Numbered> {
        let mut found = self.idle.borrow_mut();
        // A found connection may have been used since.
        let next = |found: &mut VecDeque<Numbered>| {
            std::iter::from_fn(|| found.pop_front())
                .find(|(_, connection)| connection.idle_since(now).is_some())
        };
        next(&mut found).or_else(|| {
            *found = search(connections, now);
            debug_assert!(found.len() <= FOUND, "a search finds {FOUND} at most");
            next(&mut found)
        })
    }
}

/// Finds the longest idle connections, in this order.
fn search(connections: &BTreeMap<u64, Rc<ConnectionState>>, now: u32) -> VecDeque<Numbered> {
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

//! The requests of one kind that are in service, and their ages.

use std::collections::HashMap;

use posthaste_units::{Instant, Span};

/// Time for which counts by age are kept.
const KEPT: Span = Span::from_millis(10);

/// The requests of one kind in service: the time of each admission, by number.
#[derive(Debug, Default)]
pub(crate) struct Present(HashMap<u64, Instant>);

/// A count of requests by age, counted anew after 10 ms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeptCount {
    count: u32,
    at: Option<Instant>,
}

impl Present {
    /// A request is in service from now on.
    pub(crate) fn enter(&mut self, number: u64, now: Instant) {
        self.0.insert(number, now);
    }

    /// A request is no longer in service.
    pub(crate) fn leave(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Requests in service.
    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Requests in service for more than this time.
    pub(crate) fn older(&self, now: Instant, age: Span) -> u32 {
        let is_older = |since: &&Instant| now.saturating_since(**since) > age;
        self.0.values().filter(is_older).count() as u32
    }
}

impl KeptCount {
    /// The count, by `count` if it was not counted for 10 ms.
    pub(crate) fn get(&mut self, now: Instant, count: impl FnOnce() -> u32) -> u32 {
        if self.at.is_none_or(|at| now.saturating_since(at) >= KEPT) {
            *self = Self {
                count: count(),
                at: Some(now),
            };
        }
        self.count
    }
}

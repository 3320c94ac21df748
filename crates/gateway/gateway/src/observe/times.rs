//! Histograms of times in powers of two, and those of one route by class of status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_units::Span;

use crate::config::RouteConfig;

/// Classes of statuses, in the order in which they are counted.
pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A histogram of times. Bucket *n* counts times below 2^*n* µs that no lower bucket counts; the last is unbounded.
#[derive(Debug, Default)]
pub(crate) struct TimeHistogram {
    pub(crate) buckets: [AtomicU64; 26],
    pub(crate) nanos: AtomicU64,
}

/// Times from the head of a request to the head of its reply, of one route. Kept across new configurations.
#[derive(Debug, Default)]
pub(crate) struct RouteTimes {
    /// [`RouteConfig::label`] of the route; empty for requests without a route.
    pub(crate) name: String,
    /// In the order of [`CLASSES`].
    pub(crate) classes: [TimeHistogram; CLASSES.len()],
}

impl TimeHistogram {
    pub(crate) fn add(&self, time: Span) {
        let micros = time.as_nanos() / 1000;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[bucket.min(self.buckets.len() - 1)].fetch_add(1, Relaxed);
        self.nanos.fetch_add(time.as_nanos(), Relaxed);
    }

    /// True if a time was added.
    pub(crate) fn has_any(&self) -> bool {
        self.buckets.iter().any(|bucket| bucket.load(Relaxed) > 0)
    }
}

impl RouteTimes {
    pub(crate) fn new(route: &RouteConfig) -> Self {
        Self {
            name: route.label().into_owned(),
            ..Self::default()
        }
    }

    /// Adds the time of a reply with this status. A status without a class counts as a server error (RFC 9110,
    /// section 15).
    pub(crate) fn add(&self, status: u16, time: Span) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len());
        self.classes[class - 1].add(time);
    }
}

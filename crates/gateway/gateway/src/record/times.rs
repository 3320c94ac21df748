//! Histograms of times in powers of two, and those of one route by class of status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_units::Span;

use posthaste_gateway_config::RouteConfig;

/// Classes of statuses, in the order in which they are counted. Last the requests without a reply.
pub(crate) const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "none"];

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
    /// Requests that began.
    pub(crate) begun: AtomicU64,
    /// Requests that admission rejected. They are in a class, too.
    pub(crate) rejected: AtomicU64,
}

impl TimeHistogram {
    pub(crate) fn add(&self, time: Span) {
        let micros = time.as_nanos() / 1000;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[bucket.min(self.buckets.len() - 1)].fetch_add(1, Relaxed);
        self.nanos.fetch_add(time.as_nanos(), Relaxed);
    }

    /// Counts a request that was given up after `time`: no bound of a bucket is known to cover its reply.
    pub(crate) fn add_given_up(&self, time: Span) {
        self.buckets[self.buckets.len() - 1].fetch_add(1, Relaxed);
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
        self.class(status).add(time);
    }

    /// Counts a request that was given up after `time`. `status` is that of the reply that says so, if there is one.
    pub(crate) fn add_given_up(&self, status: Option<u16>, time: Span) {
        let without_reply = &self.classes[CLASSES.len() - 1];
        let times = status.map_or(without_reply, |status| self.class(status));
        times.add_given_up(time);
    }

    fn class(&self, status: u16) -> &TimeHistogram {
        let class = usize::from(status / 100).clamp(1, CLASSES.len() - 1);
        &self.classes[class - 1]
    }
}

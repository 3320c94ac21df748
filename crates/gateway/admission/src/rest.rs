//! Rest of a service: time in which nothing is in service and hardly anything is rejected.
//!
//! Limits and prices learn from replies and samples. Their last state is that of the load, so without requests it would
//! outlive the load. [`Rest`] reports when it no longer applies. The rule:
//!
//! 1. A pause starts when the last request in service ends. A request in service ends it.
//! 2. A pause shorter than the quiet time, four mean reply times and at least 0.5 s, has no effect. So a client that
//!    sends in bursts, and an overload with gaps between its requests, are not mistaken for the end of the load. A
//!    service that hangs has requests in service, and long reply times after them.
//! 3. During a second quiet time the rest rises from 0 to 1. At 1 nothing of the load is left: every request has ended.
//! 4. Rejected requests are demand. They restart the pause, unless serving all of them would have taken less than a
//!    tenth of it.

use posthaste_units::{Instant, Ratio, Span};

/// Quiet time in mean reply times.
const REPLIES: f64 = 4.0;
/// Bounds of the quiet time in seconds.
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 30.0;

/// Share of a pause that rejected requests may have filled.
const REJECTED: f64 = 0.1;

/// Weight of a reply in the mean reply time.
const WEIGHT: f64 = 0.1;

/// The rest of one service.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// Start of the pause. `None` while a request is in service.
    since: Option<Instant>,
    /// Requests rejected in the pause.
    rejected: u32,
    /// Mean reply time in seconds, failures included. `None` before the first reply.
    mean: Option<f64>,
}

impl Rest {
    /// Starts without a request in service.
    pub const fn new(now: Instant) -> Self {
        Self {
            since: Some(now),
            rejected: 0,
            mean: None,
        }
    }

    /// A request is in service.
    pub const fn enter(&mut self) {
        self.since = None;
    }

    /// The last request in service has ended.
    pub const fn leave(&mut self, now: Instant) {
        (self.since, self.rejected) = (Some(now), 0);
    }

    /// A request was answered or has failed after this time.
    pub fn replied(&mut self, latency: Span) {
        let latency = latency.as_secs_f64();
        let mean = self.mean.get_or_insert(latency);
        *mean += (latency - *mean) * WEIGHT;
    }

    /// A request was rejected that would have been admitted without the load.
    pub fn rejected(&mut self, now: Instant) {
        let Some(since) = self.since else {
            return;
        };
        self.rejected += 1;
        let passed = now.saturating_since(since).as_secs_f64();
        let work = self
            .mean
            .map_or(f64::INFINITY, |mean| f64::from(self.rejected) * mean);
        if work > passed * REJECTED {
            self.leave(now);
        }
    }

    /// The rest at this time: 0 while the load may go on, 1 when nothing of it is left.
    pub fn at(&self, now: Instant) -> Ratio {
        let Some(since) = self.since else {
            return Ratio::default();
        };
        let mean = self.mean.unwrap_or_default();
        let quiet = (REPLIES * mean).clamp(SHORTEST, LONGEST);
        let passed = now.saturating_since(since).as_secs_f64();
        Ratio::new((passed / quiet - 1.0).clamp(0.0, 1.0)).expect("a share")
    }

    /// Mean reply time. `None` before the first reply.
    pub fn mean(&self) -> Option<Span> {
        self.mean.map(Span::from_secs_f64)
    }
}

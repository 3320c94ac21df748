//! A rate limit without prices: a token bucket.
//!
//! Uses the generic cell rate algorithm (ITU-T I.371). Its only state is the due time of the next request if all
//! requests arrived at equal intervals.

use posthaste_units::{Instant, Span};

/// Admits at most `rate` requests per second in the long run and `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    interval: Span,
    /// Permitted time between arrival and due time.
    tolerance: Span,
    due: Instant,
}

impl Bucket {
    /// Creates a full bucket. A `burst` of 0 counts as 1. A rate of 0 admits one request only.
    pub fn new(rate: f64, burst: u32) -> Self {
        let interval = match rate > 0.0 {
            true => Span::from_secs_f64(1.0 / rate),
            false => Span::MAX,
        };
        Self {
            interval,
            // At most half of the time range, so that a due time that saturated at infinity is never within it.
            tolerance: (interval * u64::from(burst.max(1) - 1)).min(Span::MAX / 2),
            due: Instant::ORIGIN,
        }
    }

    /// Admits one request. Fails with the time to wait if it arrives too early.
    pub fn take(&mut self, now: Instant) -> Result<(), Span> {
        let early = self.due.saturating_since(now);
        if early > self.tolerance {
            return Err(early.saturating_sub(self.tolerance));
        }
        self.due = self.due.max(now) + self.interval;
        Ok(())
    }
}

//! A rate limit without prices: requests an interval apart, a few of them at once.
//!
//! The generic cell rate algorithm (ITU-T I.371): one point in time is all the state there is, the time
//! at which the next request would be due if all came evenly.

use posthaste_units::{Instant, Span};

/// Admits at most `rate` requests per second in the long run, and `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    interval: Span,
    /// How much earlier than due a request may come.
    tolerance: Span,
    due: Instant,
}

impl Bucket {
    /// A full bucket. A `burst` of 0 counts as 1; a rate of 0 admits one request and no more.
    pub fn new(rate: f64, burst: u32) -> Self {
        let interval = match rate > 0.0 {
            true => Span::from_secs_f64(1.0 / rate),
            false => Span::MAX,
        };
        Self {
            interval,
            // Half of all time at most: what is due never (it saturates there) is never within it.
            tolerance: (interval * u64::from(burst.max(1) - 1)).min(Span::MAX / 2),
            due: Instant::ORIGIN,
        }
    }

    /// Takes one request; where it comes too early, in how much time it would not.
    pub fn take(&mut self, now: Instant) -> Result<(), Span> {
        let early = self.due.since(now);
        if early > self.tolerance {
            return Err(early.saturating_sub(self.tolerance));
        }
        self.due = self.due.max(now) + self.interval;
        Ok(())
    }
}

//! A rate limit without prices: a token bucket.
//!
//! Uses the generic cell rate algorithm (ITU-T I.371). Its only state is the due time of the next request if all
//! requests arrived at equal intervals.

use posthaste_units::{Instant, Span};

/// Admits at most `rate` requests per second in the long run and `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    rate: f64,
    burst: u32,
    interval: Span,
    /// Permitted time between arrival and due time.
    tolerance: Span,
    due: Instant,
}

impl Bucket {
    /// Creates a full bucket. A `burst` of 0 counts as 1. A rate of 0 admits one request only.
    pub fn new(rate: f64, burst: u32) -> Self {
        let interval = if rate > 0.0 {
            Span::from_secs_f64(1.0 / rate)
        } else {
            Span::MAX
        };
        Self {
            rate,
            burst,
            interval,
            // At most half of the time range, so that a due time that saturated at infinity is never within it.
            tolerance: (interval * u64::from(burst.max(1) - 1)).min(Span::MAX / 2),
            due: Instant::ORIGIN,
        }
    }

    /// Changes rate and burst. The requests that may be admitted at once stay the same, up to the new burst, so that
    /// changes in short succession admit no more than the rates.
    pub fn change(&mut self, now: Instant, rate: f64, burst: u32) {
        if rate == self.rate && burst == self.burst {
            return;
        }
        let full = |burst: u32| f64::from(burst.max(1));
        let early = self.due.saturating_since(now).as_secs_f64();
        let missing = early / self.interval.as_secs_f64().max(1e-9);
        let left = (full(self.burst) - missing).clamp(0.0, full(burst));
        *self = Self::new(rate, burst);
        let missing = (full(burst) - left) * self.interval.as_secs_f64();
        self.due = now + Span::from_secs_f64(missing);
    }

    /// Time until one request is admitted, zero if it would be admitted now.
    pub fn wait(&self, now: Instant) -> Span {
        let early = self.due.saturating_since(now);
        early.saturating_sub(self.tolerance)
    }

    /// Returns true if as many requests are admitted at once as in the beginning.
    pub fn is_full(&self, now: Instant) -> bool {
        self.due <= now
    }

    /// Admits one request. Fails with the time to wait if it arrives too early.
    pub fn take(&mut self, now: Instant) -> Result<(), Span> {
        let wait = self.wait(now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.due = self.due.max(now) + self.interval;
        Ok(())
    }
}

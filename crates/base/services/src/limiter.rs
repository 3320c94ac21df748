//! The token bucket in integer arithmetic, as the generic cell rate algorithm (ITU-T I.371). The interval between two
//! tokens is rounded to a nanosecond, which is at most 0.05 % at 1M/s.

use crate::misbehaviour::TokenBucket;

/// State of a token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    /// Time between two tokens, in ns.
    interval: u64,
    /// Time that a full bucket is ahead, in ns.
    ahead: u64,
    /// Theoretical arrival time of the next request.
    next: u64,
}

impl Limiter {
    pub(crate) fn new(bucket: TokenBucket) -> Self {
        let interval = bucket.rate.interval().as_nanos();
        Self {
            interval,
            ahead: interval.saturating_mul(u64::from(bucket.burst) - 1),
            next: 0,
        }
    }

    /// Takes a token at `now`. False if there is none. In t seconds at most rate * t + burst are taken.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        if self.next > now.saturating_add(self.ahead) {
            return false;
        }
        self.next = self.next.max(now).saturating_add(self.interval);
        true
    }
}

//! Quota: a limit on the offers that one token may change per minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Changes by token. Bursts of one minute's quota are allowed; beyond that, the changes are evenly spaced.
#[derive(Debug)]
pub(crate) struct Quota {
    per_minute: u32,
    /// For each token number, the time when its past changes are paid off.
    settled: Mutex<HashMap<u64, Instant>>,
}

/// A change beyond the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// Allowed after this time.
    Until(Duration),
    /// Never allowed: more changes at once than the quota of a minute.
    Always,
}

impl Quota {
    pub(crate) fn new(per_minute: u32) -> Self {
        assert!(per_minute > 0, "a quota of no changes");
        Self {
            per_minute,
            settled: Mutex::default(),
        }
    }

    /// Number of offers that one token may change per minute.
    pub(crate) const fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Charges `changes` to a token if its quota allows them.
    pub(crate) fn take(&self, token: u64, changes: usize, now: Instant) -> Result<(), Exceeded> {
        const MINUTE: Duration = Duration::from_secs(60);
        let changes = u32::try_from(changes).unwrap_or(u32::MAX);
        if changes > self.per_minute {
            return Err(Exceeded::Always);
        }
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let before = settled.get(&token).copied().unwrap_or(now).max(now);
        let after = before + MINUTE * changes / self.per_minute;
        let early = after.saturating_duration_since(now + MINUTE);
        if early > Duration::ZERO {
            return Err(Exceeded::Until(early));
        }
        debug_assert!(
            after >= before && after <= now + MINUTE,
            "a charge outside of the quota"
        );
        settled.insert(token, after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_changes_may_come_at_once_and_then_evenly() {
        let quota = Quota::new(60);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(quota.take(1, 50, at(0)), Ok(()));
        assert_eq!(quota.take(1, 10, at(0)), Ok(()));
        let wait = Exceeded::Until(Duration::from_secs(3));
        assert_eq!(quota.take(1, 3, at(0)), Err(wait));
        assert_eq!(quota.take(2, 60, at(0)), Ok(()), "another token");
        assert_eq!(quota.take(1, 3, at(3)), Ok(()));
        assert_eq!(quota.take(1, 61, at(1000)), Err(Exceeded::Always));
        assert_eq!(quota.take(1, 60, at(1000)), Ok(()));
    }
}

//! Health of endpoints, from connections and checks; shared by all threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use posthaste_gateway_config as config;

/// The health of one endpoint.
#[derive(Debug)]
pub(crate) struct Health {
    failures_to_leave: u32,
    /// Passed checks in a row that end an exclusion.
    successes_to_return: u32,
    out_for: Duration,
    /// Health checks are configured, so a connection alone proves nothing.
    is_checked: bool,
    start: Instant,
    /// At least one attempt has succeeded.
    has_succeeded: AtomicBool,
    failures: AtomicU32,
    /// Passed checks in a row during an exclusion.
    successes: AtomicU32,
    /// End of the exclusion, in milliseconds since `start`.
    out_until: AtomicU64,
}

/// The state of an endpoint as `/status` reports it. That of an upstream is the first in this order that one of its
/// endpoints has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UpstreamState {
    /// The last connection succeeded; with checks, the last check.
    Up,
    /// Neither up nor out: no attempt yet, the last one failed without causing an exclusion, or the exclusion has
    /// expired.
    Unknown,
    /// Excluded for a while by the rules for ejection.
    Ejected,
    /// Excluded after too many failed connections or checks in a row.
    Out,
    /// The name of the upstream has no address yet. Never the state of an endpoint.
    Unresolved,
}

impl UpstreamState {
    /// The states of endpoints.
    pub(crate) const OF_ENDPOINTS: [Self; 4] = [Self::Up, Self::Unknown, Self::Ejected, Self::Out];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Ejected => "ejected",
            Self::Out => "out",
            Self::Unknown => "unknown",
            Self::Unresolved => "unresolved",
        }
    }
}

impl Health {
    /// Excludes the upstream after the configured number of failures in a row. Without checks, one request tries it
    /// again after a while. With checks, the configured number of passed checks in a row ends the exclusion; every
    /// other result extends it.
    pub(crate) fn new(config: &config::Health) -> Self {
        assert!(
            config.failures > 0,
            "an upstream is excluded without a failure"
        );
        assert!(
            config.successes > 0,
            "an upstream returns without a success"
        );
        let is_checked = config.path.is_some();
        let intervals = if is_checked { 3 } else { 1 };
        Self {
            is_checked,
            failures_to_leave: config.failures,
            successes_to_return: config.successes,
            out_for: Duration::from(config.every) * intervals,
            start: Instant::now(),
            has_succeeded: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            successes: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
        }
    }

    /// True if the upstream receives requests.
    pub(crate) fn is_up(&self) -> bool {
        let until = self.out_until.load(Relaxed);
        until == 0 || self.is_past(until)
    }

    /// Estimated time until the upstream receives requests again: the interval of the checks, or without checks the rest
    /// of the exclusion.
    pub(crate) fn returns_in(&self) -> Duration {
        if self.is_checked {
            return self.out_for / 3;
        }
        let until = Duration::from_millis(self.out_until.load(Relaxed));
        until.saturating_sub(self.start.elapsed())
    }

    /// Returns the state for `/status`.
    pub(crate) fn state(&self) -> UpstreamState {
        let until = self.out_until.load(Relaxed);
        let is_well = self.has_succeeded.load(Relaxed) && self.failures.load(Relaxed) == 0;
        match (until, is_well) {
            (0, true) => UpstreamState::Up,
            (0, false) => UpstreamState::Unknown,
            _ if self.is_past(until) => UpstreamState::Unknown,
            _ => UpstreamState::Out,
        }
    }

    /// Returns true if this caller may use the upstream. After an exclusion only the first caller may; the exclusion
    /// continues for the others until its result is known.
    pub(crate) fn try_use(&self) -> bool {
        let until = self.out_until.load(Relaxed);
        let is_first = || {
            let next = self.out_again();
            let swapped = self
                .out_until
                .compare_exchange(until, next, Relaxed, Relaxed);
            swapped.is_ok()
        };
        until == 0 || self.is_past(until) && is_first()
    }

    fn is_past(&self, until: u64) -> bool {
        self.start.elapsed().as_millis() as u64 >= until
    }

    /// Returns the end of an exclusion that starts now.
    fn out_again(&self) -> u64 {
        let until = self.start.elapsed() + self.out_for;
        until.as_millis().max(1) as u64
    }

    /// Records an accepted connection. It counts as a success if no checks are configured.
    pub(crate) fn connected(&self) {
        if !self.is_checked {
            self.succeeded();
        }
    }

    /// Records a success. During an exclusion it extends the exclusion until the successes in a row are enough.
    pub(crate) fn succeeded(&self) {
        // Usually writes nothing, so the cache line stays shared among threads.
        if !self.has_succeeded.load(Relaxed) {
            self.has_succeeded.store(true, Relaxed);
        }
        let is_out = self.out_until.load(Relaxed) != 0;
        if !is_out && self.failures.load(Relaxed) == 0 {
            return;
        }
        if is_out && self.successes.fetch_add(1, Relaxed) + 1 < self.successes_to_return {
            self.out_until.store(self.out_again(), Relaxed);
            return;
        }
        self.successes.store(0, Relaxed);
        self.failures.store(0, Relaxed);
        self.out_until.store(0, Relaxed);
    }

    /// Records a failed connection or check. Returns true if this failure excludes an endpoint that was in use.
    pub(crate) fn failed(&self) -> bool {
        self.successes.store(0, Relaxed);
        // Stops at the maximum, where one more would be the first again.
        let count = |failures: u32| failures.checked_add(1);
        let before = self.failures.fetch_update(Relaxed, Relaxed, count);
        let failures = before.map_or(u32::MAX, |before| before + 1);
        if failures >= self.failures_to_leave {
            self.out_until.store(self.out_again(), Relaxed);
        }
        failures == self.failures_to_leave
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Span;

    fn health(failures: u32, every: Span, path: Option<&str>) -> Health {
        Health::new(&config::Health {
            path: path.map(str::to_owned),
            every,
            failures,
            ..config::Health::default()
        })
    }

    #[test]
    fn the_state_follows_the_last_attempt() {
        let health = health(2, Span::from_secs(3600), None);
        assert_eq!(health.state(), UpstreamState::Unknown, "never tried");
        health.connected();
        assert_eq!(health.state(), UpstreamState::Up);
        assert!(!health.failed());
        assert_eq!(
            health.state(),
            UpstreamState::Unknown,
            "failed once of twice"
        );
        assert!(health.failed());
        assert_eq!(health.state(), UpstreamState::Out);
        health.succeeded();
        assert_eq!(health.state(), UpstreamState::Up);
    }

    #[test]
    fn successes_in_a_row_end_an_exclusion() {
        let health = Health::new(&config::Health {
            path: Some("/health".to_owned()),
            every: Span::from_secs(3600),
            failures: 2,
            successes: 3,
            ..config::Health::default()
        });
        health.succeeded();
        assert_eq!(health.state(), UpstreamState::Up, "new addresses need one");
        assert!(!health.failed());
        health.succeeded();
        assert!(!health.failed(), "failures count in a row");
        assert!(health.failed());
        for _ in 0..2 {
            health.succeeded();
            health.succeeded();
            assert_eq!(health.state(), UpstreamState::Out);
            assert!(!health.failed(), "already excluded");
        }
        health.succeeded();
        health.succeeded();
        assert!(!health.is_up());
        health.succeeded();
        assert_eq!(health.state(), UpstreamState::Up);
    }

    #[test]
    fn after_its_time_out_nothing_is_known() {
        let health = health(1, Span::ZERO, None);
        assert!(health.failed());
        while !health.is_up() {
            std::thread::yield_now();
        }
        assert_eq!(health.state(), UpstreamState::Unknown);
    }

    #[test]
    fn connections_do_not_change_health_with_active_checks() {
        let health = health(1, Span::from_secs(3600), Some("/health"));
        health.connected();
        assert_eq!(health.state(), UpstreamState::Unknown);
        health.succeeded();
        assert_eq!(health.state(), UpstreamState::Up);
    }
}

//! Which upstreams are asked: what connections and checks have told, shared by all threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::config;

/// What is known of an upstream.
#[derive(Debug)]
pub(crate) struct Health {
    failures_to_leave: u32,
    out_for: Duration,
    /// Checks ask for more than a connection.
    is_checked: bool,
    start: Instant,
    /// It has succeeded at least once.
    has_succeeded: AtomicBool,
    failures: AtomicU32,
    /// Milliseconds since `start` until which it is not asked.
    out_until: AtomicU64,
}

/// The state of an upstream as `/status` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// The last connection or, where there are checks, the last check succeeded.
    Up,
    /// Excluded after too many failures in a row.
    Out,
    /// Neither: nothing was tried yet, the last attempt failed and it is not out for that, or its time out is over.
    Unknown,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Out => "out",
            Self::Unknown => "unknown",
        }
    }
}

impl Health {
    /// So many failures in a row take it out. Without checks one request tries it again after a while;
    /// with checks one of them does, and each that fails puts the time off.
    pub(crate) fn new(config: &config::Health) -> Self {
        let is_checked = config.path.is_some();
        let patience = if is_checked { 3 } else { 1 };
        Self {
            is_checked,
            failures_to_leave: config.failures,
            out_for: Duration::from(config.every) * patience,
            start: Instant::now(),
            has_succeeded: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
        }
    }

    /// Whether it is asked.
    pub(crate) fn is_up(&self) -> bool {
        let until = self.out_until.load(Relaxed);
        until == 0 || self.is_past(until)
    }

    /// Returns the state for `/status`.
    pub(crate) fn state(&self) -> State {
        let until = self.out_until.load(Relaxed);
        let is_well = self.has_succeeded.load(Relaxed) && self.failures.load(Relaxed) == 0;
        match (until, is_well) {
            (0, true) => State::Up,
            (0, false) => State::Unknown,
            _ if self.is_past(until) => State::Unknown,
            _ => State::Out,
        }
    }

    /// Whether it is asked by this caller. Who comes first after it was out finds out for the others, who leave it out
    /// meanwhile.
    pub(crate) fn lets_in(&self) -> bool {
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

    /// Until when it is out from now.
    fn out_again(&self) -> u64 {
        let until = self.start.elapsed() + self.out_for;
        until.as_millis().max(1) as u64
    }

    /// It took a request's connection, which is enough where no check asks for more.
    pub(crate) fn connected(&self) {
        if !self.is_checked {
            self.succeeded();
        }
    }

    /// It answered.
    pub(crate) fn succeeded(&self) {
        // Almost always nothing to write: the line stays in every thread's cache.
        if !self.has_succeeded.load(Relaxed) {
            self.has_succeeded.store(true, Relaxed);
        }
        if self.failures.load(Relaxed) != 0 || self.out_until.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
            self.out_until.store(0, Relaxed);
        }
    }

    /// It could not be connected to, or did not pass a check; whether that takes it out.
    pub(crate) fn failed(&self) -> bool {
        let out = self.failures.fetch_add(1, Relaxed) + 1 >= self.failures_to_leave;
        if out {
            self.out_until.store(self.out_again(), Relaxed);
        }
        out
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
        })
    }

    #[test]
    fn the_state_follows_the_last_attempt() {
        let health = health(2, Span::from_secs(3600), None);
        assert_eq!(health.state(), State::Unknown, "never tried");
        health.connected();
        assert_eq!(health.state(), State::Up);
        assert!(!health.failed());
        assert_eq!(health.state(), State::Unknown, "failed once of twice");
        assert!(health.failed());
        assert_eq!(health.state(), State::Out);
        health.succeeded();
        assert_eq!(health.state(), State::Up);
    }

    #[test]
    fn after_its_time_out_nothing_is_known() {
        let health = health(1, Span::ZERO, None);
        assert!(health.failed());
        while !health.is_up() {
            std::thread::yield_now();
        }
        assert_eq!(health.state(), State::Unknown);
    }

    #[test]
    fn where_there_are_checks_a_connection_tells_nothing() {
        let health = health(1, Span::from_secs(3600), Some("/health"));
        health.connected();
        assert_eq!(health.state(), State::Unknown);
        health.succeeded();
        assert_eq!(health.state(), State::Up);
    }
}

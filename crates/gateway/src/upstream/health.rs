//! Which upstreams are asked: what connections and checks have told, shared by all threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
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
    failures: AtomicU32,
    /// Milliseconds since `start` until which it is not asked.
    out_until: AtomicU64,
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
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
        }
    }

    /// Whether it is asked.
    pub(crate) fn is_up(&self) -> bool {
        let until = self.out_until.load(Relaxed);
        until == 0 || self.is_past(until)
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

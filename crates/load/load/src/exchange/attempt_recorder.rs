//! Records of single attempts, for experiments in which the path of a connection depends on its local port.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use posthaste_units::{Instant, Span};

use crate::exchange::HttpExchange;
use crate::outcome::Outcome;

/// Assigns local ports, and records the end of each attempt.
///
/// Connections get consecutive ports in the order in which they are opened. With one event loop and a new connection
/// for each request, request n therefore has port `first + n`.
#[derive(Debug)]
pub struct AttemptRecorder {
    next_port: AtomicU16,
    ended: Mutex<Vec<EndedAttempt>>,
}

/// An attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// Number of its request, from 0.
    pub request: u64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Time from its first packet to its end. Excludes the lateness of the generator.
    pub took: Span,
}

impl AttemptRecorder {
    /// Creates a recorder whose first connection has local port `first`. Ports after the last one begin at 0, which
    /// leaves the choice to the system.
    pub const fn new(first: u16) -> Self {
        Self {
            next_port: AtomicU16::new(first),
            ended: Mutex::new(Vec::new()),
        }
    }

    /// The attempts that have ended so far, in the order of their ends.
    pub fn ended(&self) -> Vec<EndedAttempt> {
        self.ended
            .lock()
            .map(|ended| ended.clone())
            .unwrap_or_default()
    }

    /// Number of attempts that have ended so far.
    pub fn count(&self) -> usize {
        self.ended.lock().map_or(0, |ended| ended.len())
    }

    /// The local port of the next connection.
    pub(crate) fn assign_port(&self) -> u16 {
        self.next_port.fetch_add(1, Relaxed)
    }

    pub(crate) fn record(&self, exchange: &HttpExchange, outcome: Outcome, done: Instant) {
        let attempt = EndedAttempt {
            request: exchange.due.number,
            outcome,
            took: done.saturating_since(exchange.moments.begun),
        };
        if let Ok(mut ended) = self.ended.lock() {
            ended.push(attempt);
        }
    }
}

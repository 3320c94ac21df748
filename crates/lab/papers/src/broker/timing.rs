//! Speed of lookups of one design, measured in alternation with others: the time of each lookup, and the rate.

use std::time::Instant;

use jiff::Timestamp;
use posthaste_qos::Definition;
use posthaste_study::{Failure, estimate};

use super::designs::LookupMethod;

/// Lookups of a design in its turns.
pub(super) struct Timing {
    nanos: Vec<f64>,
    found: u64,
    /// Lookups per second of each turn.
    rates: Vec<f64>,
}

impl Timing {
    pub(super) fn new() -> Self {
        Self {
            // Avoids growth during the measurement.
            nanos: Vec::with_capacity(1 << 20),
            found: 0,
            rates: Vec::new(),
        }
    }

    /// Runs lookups for `seconds`.
    pub(super) fn run<'k>(
        &mut self,
        method: &LookupMethod<'_>,
        wanted: &Definition,
        mut kind: impl FnMut() -> &'k str,
        seconds: f64,
    ) -> Result<(), Failure> {
        let (now, before) = (Timestamp::now(), self.nanos.len());
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < seconds {
            let kind = kind();
            let begin = Instant::now();
            self.found += u64::from(method.price(kind, wanted, now)?.is_some());
            self.nanos.push(begin.elapsed().as_nanos() as f64);
        }
        let done = self.nanos.len() - before;
        self.rates.push(done as f64 / start.elapsed().as_secs_f64());
        Ok(())
    }

    pub(super) fn lookups(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// Number of lookups that found an offer.
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    /// Lookups per second, as the median of the turns.
    pub(super) fn rate(&self) -> f64 {
        estimate(&self.rates).median
    }

    /// Quantiles of the lookup times, in microseconds.
    pub(super) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut nanos = self.nanos.clone();
        nanos.sort_by(f64::total_cmp);
        shares.map(|share| nanos[((nanos.len() - 1) as f64 * share) as usize] / 1e3)
    }
}

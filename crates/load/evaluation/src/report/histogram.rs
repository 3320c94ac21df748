//! A small histogram of response times for reports: bins of 1, 2 and 5 in each decade.

use posthaste_stats::Histogram;
use serde::{Deserialize, Serialize};

/// Bounds of the bins within a decade.
const IN_DECADE: [f64; 3] = [1.0, 2.0, 5.0];
/// The first decade of bins ends at a microsecond.
const FIRST_DECADE: i32 = -3;

/// A bin of response times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Upper end in milliseconds. The lower end is the upper end of the previous bin.
    pub up_to_ms: f64,
    /// Requests in it.
    pub requests: u64,
}

/// Returns the bins from the first to the last that is not empty.
pub(super) fn bins(times: &Histogram) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    let mut bounds = bounds();
    let mut bound = bounds.next().unwrap_or(f64::INFINITY);
    for step in times.steps() {
        let value = step.value.as_millis_f64();
        // Steps are as wide as a thousandth. One that straddles a bound belongs below it.
        while value > bound * 1.001 {
            let next = bounds.next().unwrap_or(f64::INFINITY);
            if !bins.is_empty() {
                bins.push(Bin {
                    up_to_ms: next,
                    requests: 0,
                });
            }
            bound = next;
        }
        match bins.last_mut() {
            Some(last) => last.requests += step.count,
            None => bins.push(Bin {
                up_to_ms: bound,
                requests: step.count,
            }),
        }
    }
    bins
}

fn bounds() -> impl Iterator<Item = f64> {
    (FIRST_DECADE..).flat_map(|decade| IN_DECADE.map(|digit| digit * 10f64.powi(decade)))
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let mut times = Histogram::new();
        for micros in [900, 1_000, 1_500, 40_000, 40_000] {
            times.record(Span::from_micros(micros));
        }
        let found = bins(&times);
        let counts: Vec<(f64, u64)> = found.iter().map(|b| (b.up_to_ms, b.requests)).collect();
        assert_eq!(
            counts,
            [
                (1.0, 2),
                (2.0, 1),
                (5.0, 0),
                (10.0, 0),
                (20.0, 0),
                (50.0, 2)
            ]
        );
        assert!(bins(&Histogram::new()).is_empty());
    }
}

//! Numbers as text.

use posthaste_units::thousands;

/// Milliseconds with a sensible number of digits.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 0.1 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

/// Events per second, with a decimal below 100.
pub(super) fn per_second(rate: f64) -> String {
    if rate < 100.0 {
        format!("{rate:.1}")
    } else {
        thousands(rate.round() as u64)
    }
}

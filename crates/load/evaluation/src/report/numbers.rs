//! Numbers as text.

/// Milliseconds with a sensible number of digits.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{ms:.0}"),
        ms if ms >= 10.0 => format!("{ms:.1}"),
        ms if ms >= 0.1 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

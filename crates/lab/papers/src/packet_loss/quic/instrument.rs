//! Checks of the instrument, for all studies of QUIC with emulated transactions.

use posthaste_study::{Check, Records};

/// Accepted lateness of the emulator at the 99th percentile, in µs.
const LATE_US: f64 = 2000.0;

pub(super) fn checks(records: &Records) -> Vec<Check> {
    let [transactions, failed, other] =
        ["transactions", "failed", "other losses"].map(|name| records.number(name));
    let late = records.number("lateness p99 us");
    let missing = records.parameters().get("stacks that are not installed");
    let missing = missing.map(String::as_str).unwrap_or_default();
    let mut checks = vec![
        Check::instrument(
            transactions > 0.0 && failed == 0.0,
            format!("{failed:.0} of {transactions:.0} transactions had no reply."),
        ),
        Check::instrument(
            other == 0.0,
            format!(
                "{other:.0} of {transactions:.0} transactions lost another packet than planned."
            ),
        ),
        Check::goal(
            late < LATE_US,
            format!("Packets left the emulated lines {late:.0} µs late at the 99th percentile."),
        )
        .because("the machine was busy."),
    ];
    if !missing.is_empty() {
        checks.push(Check::goal(
            false,
            format!("Not installed, so nothing is known about them: {missing}."),
        ));
    }
    checks
}

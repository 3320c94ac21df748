//! What must hold of the instrument in every figure of this paper.

use posthaste_units::Span;

use super::rig::PROCESSING;
use super::service::AUTHOR;
use super::sweep::CHECKED;
use crate::check::Check;
use crate::records::Records;

/// How far the emulation may be from what is computed, beside its own lateness.
const TOLERANCE_MS: f64 = 0.5;

/// Positions, outcomes, and a time that can be computed.
pub(super) fn checks(records: &Records) -> Vec<Check> {
    let table = records.table("transactions");
    let all = table.len();
    let count = |column: &str| table.rows().filter(|row| row.number(column) == 1.0).count();
    let (exact, well) = (count("exact"), count("well"));
    let mut checks = vec![
        Check::instrument(
            exact == all && all > 0,
            format!(
                "In {exact} of {all} transactions the link dropped exactly the packet it was to drop, and no other."
            ),
        ),
        Check::instrument(
            well == all,
            format!(
                "{well} of {all} transactions ended with the whole reply and then the end of the connection."
            ),
        ),
    ];
    let mut steady: Vec<f64> = table
        .rows()
        .filter(|row| row.number("varies") == 0.0 && row.text("kernel") == "today")
        .map(|row| row.number("response_ms"))
        .collect();
    steady.sort_by(f64::total_cmp);
    let computed = CHECKED.lossless(&AUTHOR, PROCESSING).as_millis_f64();
    let measured = steady.get(steady.len() / 2).copied().unwrap_or(f64::NAN);
    let late = records.number("lateness p99 us") / 1000.0;
    checks.push(Check::instrument(
        (measured - computed).abs() <= TOLERANCE_MS + late,
        format!("Author without loss and with steady delays at {} kbit/s and {} ms takes {measured:.1} ms; computed are {computed:.1} ms.", CHECKED.kbit, CHECKED.ms),
    ));
    let p50 = Span::from_secs_f64(records.number("lateness p50 us") / 1e6);
    checks.push(Check::instrument(
        late < 1.0,
        format!("Packets left {p50} after their time at the median and {late:.2} ms at the 99th of a hundred."),
    ));
    checks
}

//! Checks of the instrument, shared by every figure of this paper.

use posthaste_emulator::TOLERANCE;
use posthaste_study::{Check, Records, estimate};
use posthaste_units::Span;

use super::columns::CLIENT;
use super::job::{Job, PROCESSING};
use super::kernel::TODAY;
use super::line::{NetworkLine, PlannedDrops};
use super::service::AUTHOR;

/// The line on which the emulation is compared with a computed time.
const CHECKED: NetworkLine = NetworkLine { kbit: 300, ms: 10 };

/// Number of transactions on it without loss and with steady delays.
const CHECKS: usize = 9;

/// Tolerated deviation from the computed time, in addition to the emulator's lateness.
const TOLERANCE_MS: f64 = 0.5;

/// Tolerated share of transactions with losses of other data than intended.
const DISPLACED: f64 = 0.02;

/// Transactions with a computable time and today's kernel. Every emulated study makes some.
pub(super) fn steady() -> Vec<Job> {
    let steady = Job {
        service: &AUTHOR,
        line: CHECKED,
        drops: PlannedDrops::NONE,
        varies: false,
    };
    vec![steady; CHECKS]
}

/// Checks of positions, outcomes, the computable time and lateness.
pub(super) fn checks(records: &Records) -> Vec<Check> {
    vec![
        exact(records),
        displaced(records),
        well(records),
        computed(records),
        on_time(records),
    ]
}

/// The same checks, and those of the simulation.
pub(super) fn all(records: &Records) -> Vec<Check> {
    let mut checks = checks(records);
    checks.extend(simulation(records));
    checks
}

/// Checks of a simulation.
pub(super) fn simulation(records: &Records) -> Vec<Check> {
    let number = |name: &str| records.number(&format!("simulated{name}"));
    let all = number("");
    let [exact, planned, well] = [" exact", " planned", " well"].map(number);
    let displaced = number(" displaced");
    let [again, alike, steady] = [" again", " alike", " steady ms"].map(number);
    let computed = computed_ms(Span::ZERO);
    vec![
        Check::instrument(
            planned == all && exact >= (1.0 - DISPLACED) * all && well == all && all > 0.0,
            format!(
                "In {exact} of {all} simulated transactions the link dropped exactly the packets it was to drop, in {planned} no other (a packet that never came could not be dropped); {well} ended with the whole reply and both ends closed; in {displaced} something had been sent again before the loss: they are omitted."
            ),
        ),
        Check::instrument(
            alike == again && again > 0.0,
            format!(
                "Simulated again in another order and on one core, {alike} of {again} came out the same to the nanosecond."
            ),
        ),
        Check::instrument(
            (steady - computed).abs() < 0.001,
            format!(
                "Author without loss and with steady delays at {} kbit/s and {} ms takes {steady:.3} ms in the simulation; computed are {computed:.3} ms.",
                CHECKED.kbit, CHECKED.ms
            ),
        ),
    ]
}

fn share(records: &Records, column: &str) -> (usize, usize) {
    let table = records.table("transactions");
    let held = table.rows().filter(|row| row.number(column) == 1.0);
    (held.count(), table.len())
}

pub(super) fn exact(records: &Records) -> Check {
    let (exact, all) = share(records, "exact");
    Check::instrument(
        exact == all && all > 0,
        format!(
            "In {exact} of {all} transactions the link dropped exactly the packets it was to drop, and no other."
        ),
    )
}

/// Checks for retransmissions before the loss, which move later positions. They are rare on a machine without pauses.
fn displaced(records: &Records) -> Check {
    let (displaced, all) = share(records, "displaced");
    Check::instrument(
        displaced as f64 <= DISPLACED * all as f64,
        format!(
            "In {displaced} of {all} something had been sent again before the loss, so that other data was lost than meant: they are omitted."
        ),
    )
}

pub(super) fn well(records: &Records) -> Check {
    let (well, all) = share(records, "well");
    Check::instrument(
        well == all,
        format!(
            "{well} of {all} transactions ended with the whole reply and then the end of the connection."
        ),
    )
}

/// Computed time of the steady transactions, for this time of the client's program.
fn computed_ms(client: Span) -> f64 {
    let computed = CHECKED.lossless(&AUTHOR, PROCESSING, client);
    computed.as_millis_f64()
}

/// Compares each steady transaction with the time computed for it. The comparison leaves out the server's time beyond
/// its processing, which belongs to the machine and not to the line.
fn computed(records: &Records) -> Check {
    let rows = records.table("transactions").rows();
    let steady = rows.filter(|row| row.number("varies") == 0.0 && row.text("kernel") == TODAY.key);
    let (measured, computed): (Vec<f64>, Vec<f64>) = steady
        .map(|row| {
            let on_the_line = row.number("response_ms") - row.number("t_proc_ms");
            let client = Span::from_secs_f64(row.number(CLIENT).max(0.0) / 1e3);
            (
                on_the_line + PROCESSING.as_millis_f64(),
                computed_ms(client),
            )
        })
        .unzip();
    let apart: Vec<f64> = measured
        .iter()
        .zip(&computed)
        .map(|(measured, computed)| measured - computed)
        .collect();
    let apart = estimate(&apart).median;
    // A run with a larger lateness fails another check.
    let late = records.number("lateness p99 us") / 1000.0;
    let late = late.min(TOLERANCE.as_millis_f64());
    Check::instrument(
        apart.abs() <= TOLERANCE_MS + late,
        format!(
            "Author without loss and with steady delays at {} kbit/s and {} ms takes {:.1} ms; computed are {:.1} ms, and the two are {apart:.1} ms apart at the median (up to {:.1} ms of the time before the request pass while the line sends the ACK of the SYN-ACK).",
            CHECKED.kbit,
            CHECKED.ms,
            estimate(&measured).median,
            estimate(&computed).median,
            computed_ms(Span::ZERO) - computed_ms(Span::MAX)
        ),
    )
}

/// The emulator's own lateness and losses, over all runs.
fn on_time(records: &Records) -> Check {
    let [p50, p99] = ["lateness p50 us", "lateness p99 us"]
        .map(|name| Span::from_secs_f64(records.number(name) / 1e6));
    let [lost, unseen] = ["lost", "unseen"].map(|name| records.number(name));
    Check::instrument(
        p99 <= TOLERANCE && lost == 0.0 && unseen == 0.0,
        format!(
            "Packets left {p50} after their time at the median and {p99} at the 99th of a hundred; {lost} were lost in addition to those that were dropped, {unseen} not written down."
        ),
    )
}

//! Checks of the instrument that every run of the generator must pass, regardless of the server.

use posthaste_load::Outcome;
use posthaste_study::{Check, RecordRow, Records, most};
use posthaste_units::thousands;

/// Maximum number of requests inside a server of these studies: 32 in service, 129 in the queue, and some on the way.
const INSIDE: f64 = 200.0;

/// Accounting checks: outcomes, attempts, and the kernel's counters if no other program uses the network.
pub(crate) fn accounting(records: &Records) -> Vec<Check> {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    if rows.is_empty() {
        return vec![Check::instrument(
            false,
            "Nothing was measured: no run was completed.",
        )];
    }
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let (intended, attempted) = (sum("intended"), sum("attempted"));
    let share = |row: &RecordRow<'_>| row.number("attempted") / row.number("intended");
    let worst = rows.iter().map(share).fold(f64::INFINITY, f64::min);
    let held = rows.iter().all(|row| (0.999..=1.001).contains(&share(row)));
    let mut checks = vec![
        identity(records),
        Check::instrument(
            held,
            format!(
                "{} of {} intended requests were attempted; in the worst run {worst:.4} of them (bounds 0.999 to 1.001).",
                whole(attempted),
                whole(intended)
            ),
        ),
    ];
    if records.number("own namespace") == 1.0 {
        checks.extend(kernel(&rows));
    }
    checks
}

/// Identity: each run intended the plan's number of requests, up to one more or less at either end, and each request
/// has one outcome.
pub(crate) fn identity(records: &Records) -> Check {
    let rows: Vec<RecordRow<'_>> = records.table("runs").rows().collect();
    let outcomes = |row: &RecordRow<'_>| {
        let counts = Outcome::ALL.map(|outcome| row.number(outcome.name()));
        counts.iter().sum::<f64>()
    };
    let as_planned = |row: &RecordRow<'_>| {
        let planned = row.number("planned");
        planned.is_nan() || (row.number("intended") - planned).abs() <= 2.0
    };
    let planned = rows
        .iter()
        .filter(|row| !row.number("planned").is_nan())
        .count();
    let equal = |row: &&RecordRow<'_>| row.number("intended") == outcomes(row) && as_planned(row);
    let (identical, runs) = (rows.iter().filter(equal).count(), rows.len());
    let intended = rows.iter().map(|row| row.number("intended")).sum();
    Check::instrument(
        identical == runs && runs > 0,
        format!(
            "Every intended request has one outcome: in {identical} of {runs} runs the outcomes sum to what was intended, {} requests in all, in the {planned} runs that have a plan of them to that.",
            whole(intended)
        ),
    )
}

fn kernel(rows: &[RecordRow<'_>]) -> [Check; 2] {
    let unconnected =
        |row: &RecordRow<'_>| row.number("connect-aborted") + row.number("unanswered");
    let agree = rows
        .iter()
        .filter(|row| unconnected(row) == row.number("listen_drops"))
        .count();
    let ours: f64 = rows.iter().map(unconnected).sum();
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let (kernels, again) = (sum("listen_drops"), sum("syn_retransmits"));
    [
        Check::instrument(
            agree == rows.len(),
            format!(
                "Requests without a connection are those that the kernel dropped: {} by the generator's count, {} by the kernel's (ListenDrops), equal in {agree} of {} runs.",
                whole(ours),
                whole(kernels),
                rows.len()
            ),
        ),
        Check::instrument(
            again == 0.0,
            format!("No SYN was sent twice: the kernel counts {again:.0} (TCPSynRetrans)."),
        ),
    ]
}

/// Checks of the accounting, the kernel's counters and the throughput.
pub(crate) fn accounted(records: &Records) -> Vec<Check> {
    let mut checks = accounting(records);
    checks.push(throughput(records));
    checks
}

/// Formats a count with separators.
fn whole(count: f64) -> String {
    thousands(count as u64)
}

/// Compares two counts of the throughput: replies to the requests due in a run, and replies that arrived in it.
fn throughput(records: &Records) -> Check {
    let rows = records.table("runs").rows();
    let apart = |row: RecordRow<'_>| {
        let apart = row.number("throughput_per_s") - row.number("served_per_s");
        apart.abs() * row.number("seconds")
    };
    let most = most(rows.map(apart));
    Check::instrument(
        most <= INSIDE,
        format!(
            "Replies to what was due in a run are as many as came in it, but for those inside at its ends: {most:.0} apart at most (bound: {INSIDE})."
        ),
    )
}

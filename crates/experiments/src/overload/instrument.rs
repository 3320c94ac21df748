//! Checks of the instrument that every run of this paper must pass, regardless of the server.

use posthaste_load::Outcome;
use posthaste_load::report::thousands;

use super::bench::Form;
use crate::check::{Check, most};
use crate::records::{Records, Row};

/// Lateness of the generator from which a run counts as disturbed. Its rejections then say nothing about the server:
/// the queue holds the arrivals of about this time.
const DISTURBED_MS: f64 = 20.0;

/// Maximum number of requests in the queue of a server of these studies. A run also counts as disturbed if this many
/// arrived during the server's total wait for its core, because the queue may have overflowed.
const QUEUE: f64 = 129.0;

/// Maximum number of requests inside a server of these studies: 32 in service, 129 in the queue, and some on the way.
const INSIDE: f64 = 200.0;

/// Accounting checks: outcomes, attempts, and the kernel's counters if no other program uses the network.
pub(crate) fn accounting(records: &Records) -> Vec<Check> {
    let rows: Vec<Row<'_>> = records.table("runs").rows().collect();
    if rows.is_empty() {
        return vec![Check::instrument(
            false,
            "Nothing was measured: no run was completed.",
        )];
    }
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let (intended, attempted) = (sum("intended"), sum("attempted"));
    let share = |row: &Row<'_>| row.number("attempted") / row.number("intended");
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
    let rows: Vec<Row<'_>> = records.table("runs").rows().collect();
    let outcomes = |row: &Row<'_>| {
        let counts = Outcome::ALL.map(|outcome| row.number(outcome.name()));
        counts.iter().sum::<f64>()
    };
    let as_planned = |row: &Row<'_>| {
        let planned = row.number("planned");
        planned.is_nan() || (row.number("intended") - planned).abs() <= 2.0
    };
    let planned = rows
        .iter()
        .filter(|row| !row.number("planned").is_nan())
        .count();
    let equal = |row: &&Row<'_>| row.number("intended") == outcomes(row) && as_planned(row);
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

fn kernel(rows: &[Row<'_>]) -> [Check; 2] {
    let unconnected = |row: &Row<'_>| row.number("connect-aborted") + row.number("unanswered");
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

/// Formats a count with separators.
fn whole(count: f64) -> String {
    thousands(count as u64)
}

/// Compares two counts of the throughput: replies to the requests due in a run, and replies that arrived in it.
pub(crate) fn throughput(records: &Records) -> Check {
    let rows = records.table("runs").rows();
    let apart = |row: Row<'_>| {
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

/// Checks that nothing is rejected below 70 % of a form's own capacity. Omits runs in which another program held a
/// core. `None` if no run is left.
pub(super) fn no_early_rejection(records: &Records) -> Option<Check> {
    let low = |row: &Row<'_>| {
        let own = Form::ALL
            .into_iter()
            .find(|form| form.key() == row.text("form"));
        let capacity = own.map_or(f64::NAN, |form| {
            records.number(&format!("capacity {}", form.key()))
        });
        row.number("offered_per_s") < 0.7 * capacity
    };
    let disturbed = |row: &Row<'_>| {
        let came = row.number("server_waited_ms") / 1e3 * row.number("offered_per_s");
        row.number("lateness_max_ms") > DISTURBED_MS || came >= QUEUE
    };
    let (out, rows): (Vec<Row<'_>>, Vec<Row<'_>>) = records
        .table("runs")
        .rows()
        .filter(low)
        .partition(disturbed);
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let rejected = sum("connect-aborted") + sum("unanswered");
    let left_out = match out.len() {
        0 => String::new(),
        1 => "; one run is left out, in which another program held a core".to_owned(),
        more => format!("; {more} runs are left out, in which another program held a core"),
    };
    let check = Check::instrument(
        rejected == 0.0,
        format!(
            "Below 70 % of a form's capacity nothing is rejected: {rejected:.0} of {:.0} requests in {} runs{left_out}.",
            sum("intended"),
            rows.len()
        ),
    );
    (!rows.is_empty()).then_some(check)
}

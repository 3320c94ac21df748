//! Checks of the instrument that hold for every run of this paper, whatever the server does.

use posthaste_load::Outcome;
use posthaste_load::report::thousands;

use super::bench::Form;
use crate::check::Check;
use crate::records::{Records, Row};

/// A server or a generator that lost its core for longer than this was disturbed: what it then
/// rejects says nothing about it. The queue holds what comes within about as long.
const DISTURBED_MS: f64 = 20.0;

/// Accounting: outcomes, attempts, and the kernel's own counts where they are ours alone.
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

/// Identity: every intended request has one outcome.
pub(crate) fn identity(records: &Records) -> Check {
    let rows: Vec<Row<'_>> = records.table("runs").rows().collect();
    let outcomes = |row: &Row<'_>| {
        let counts = Outcome::ALL.map(|outcome| row.number(outcome.name()));
        counts.iter().sum::<f64>()
    };
    let equal = |row: &&Row<'_>| row.number("intended") == outcomes(row);
    let (identical, runs) = (rows.iter().filter(equal).count(), rows.len());
    let intended = rows.iter().map(|row| row.number("intended")).sum();
    Check::instrument(
        identical == runs && runs > 0,
        format!(
            "Every intended request has one outcome: in {identical} of {runs} runs the outcomes sum to what was intended, {} requests in all.",
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

/// A count as people write it.
fn whole(count: f64) -> String {
    thousands(count as u64)
}

/// Throughput: never above what was offered.
pub(crate) fn throughput(records: &Records) -> Check {
    let rows = records.table("runs").rows();
    let share = |row: Row<'_>| row.number("throughput_per_s") / row.number("offered_per_s");
    let worst = rows.map(share).fold(0.0, f64::max);
    Check::instrument(
        worst <= 1.0 && worst > 0.0,
        format!("Throughput is never above the rate offered: at most {worst:.3} of it."),
    )
}

/// Rejections: none below 70 % of a form's own capacity, unless something took a core away.
pub(super) fn no_early_rejection(records: &Records) -> Check {
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
        row.number("lateness_max_ms")
            .max(row.number("server_waited_ms"))
            > DISTURBED_MS
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
    Check::instrument(
        rejected == 0.0,
        format!(
            "Below 70 % of a form's capacity nothing is rejected: {rejected:.0} of {:.0} requests in {} runs{left_out}.",
            sum("intended"),
            rows.len()
        ),
    )
}

//! Check of the instrument: a server far below its capacity rejects nothing.

use posthaste_study::{Check, RecordRow, Records};

use super::testbed::RequestForm;

/// Lateness of the generator from which a run counts as disturbed. Its rejections then say nothing about the server:
/// the queue holds the arrivals of about this time.
const DISTURBED_MS: f64 = 20.0;

/// Maximum number of requests in the queue of a server of these studies. A run also counts as disturbed if this many
/// arrived during the server's total wait for its core, because the queue may have overflowed.
const QUEUE: f64 = 129.0;

/// Checks that nothing is rejected below 70 % of a form's own capacity. Omits runs in which another program held a
/// core. `None` if no run is left.
pub(super) fn no_early_rejection(records: &Records) -> Option<Check> {
    let low = |row: &RecordRow<'_>| {
        let own = RequestForm::ALL
            .into_iter()
            .find(|form| form.key() == row.text("form"));
        let capacity = own.map_or(f64::NAN, |form| {
            records.number(&format!("capacity {}", form.key()))
        });
        row.number("offered_per_s") < 0.7 * capacity
    };
    let disturbed = |row: &RecordRow<'_>| {
        let came = row.number("server_waited_ms") / 1e3 * row.number("offered_per_s");
        row.number("lateness_max_ms") > DISTURBED_MS || came >= QUEUE
    };
    let (out, rows): (Vec<RecordRow<'_>>, Vec<RecordRow<'_>>) = records
        .table("runs")
        .rows()
        .filter(low)
        .partition(disturbed);
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let rejected = sum("connect-aborted") + sum("unanswered");
    let left_out = match out.len() {
        0 => String::new(),
        1 => "; one run is omitted, in which another program held a core".to_owned(),
        more => format!("; {more} runs are omitted, in which another program held a core"),
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

//! Columns of the table of transactions, which every packet-loss study has.
//!
//! Emulated and simulated transactions use the same columns. The same cells, pictures and checks then serve both.

use posthaste_study::{RecordTable, RecordValue};
use posthaste_units::ResponseTime;

use super::job::Job;
use super::observed::Traced;

/// Parts of a response time, in the order of their columns.
pub(super) const PARTS: [&str; 4] = ["t_conn_ms", "t_req_ms", "t_proc_ms", "t_resp_ms"];

/// Time of the client's program before the request. No part of the response time.
pub(super) const CLIENT: &str = "t_client_ms";

/// Returns the table without rows.
pub(super) fn table() -> RecordTable {
    RecordTable::new([
        "kernel",
        "service",
        "kbit",
        "ms",
        "position",
        "second",
        "varies",
        "well",
        "exact",
        "displaced",
        "packets",
        "dropped",
        "late",
        "again",
        "client_timeouts",
        "server_timeouts",
        "response_ms",
        "t_conn_ms",
        "t_req_ms",
        "t_proc_ms",
        "t_resp_ms",
        CLIENT,
    ])
}

/// Returns the row of a transaction between these ends, with segments of `segment` bytes. `well` is true if the
/// transaction ended as it should.
pub(super) fn row(
    key: &str,
    segment: u32,
    job: &Job,
    well: bool,
    traced: &Traced,
) -> Vec<RecordValue> {
    let mut row = vec![key.into(), job.service.key.into()];
    let mut positions = job.drops.positions();
    let line = [job.line.kbit, job.line.ms].map(Some);
    let lost = [positions.next(), positions.next()];
    row.extend(
        [line, lost]
            .concat()
            .into_iter()
            .map(|n| count(n.unwrap_or(0))),
    );
    let exact = traced.is_exact(job.drops);
    let displaced = traced.is_displaced(job, segment);
    row.extend([job.varies, well, exact, displaced].map(|is| count(is.into())));
    let late = traced.is_late_loss(job.service, segment);
    row.extend([traced.packets, traced.dropped.len() as u32, late.into()].map(count));
    let whole = traced.response.is_some();
    let again = if whole { traced.again.into() } else { f64::NAN };
    row.push(again.into());
    row.extend(traced.timeouts().map(count));
    let total = traced.response_time().map(|time| time.as_millis_f64());
    row.push(total.unwrap_or(f64::NAN).into());
    let parts = |time: ResponseTime| {
        [
            time.t_conn,
            time.t_req,
            time.t_proc,
            time.t_resp,
            time.t_client,
        ]
    };
    let parts = traced.response.map(parts).into_iter().flatten();
    row.extend(parts.map(|part| RecordValue::from(part.as_millis_f64())));
    row
}

fn count(number: u32) -> RecordValue {
    u64::from(number).into()
}

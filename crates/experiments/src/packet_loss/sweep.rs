//! The sweep: every line, every position, both services, both kernels.
//!
//! Each cell is measured three times, and twice more where one of the three waited for a timeout: the
//! kernel's timers are coarse, so that such cells scatter by tens of milliseconds.

use std::collections::BTreeMap;

use posthaste_emulator::response::Response;
use posthaste_emulator::transaction::Ended;
use posthaste_stats::Histogram;
use posthaste_units::Span;

use super::kernel::{self, Kernel};
use super::line::{self, JITTER, Line};
use super::rig::{self, Job, MOST, Measured, PROCESSING};
use super::service::{self, AUTHOR, Service};
use crate::figure::{Conditions, Failure, Study};
use crate::records::{Records, Row, Table, Value};

pub(super) static STUDY: Study = Study {
    name: "packet-loss-sweep",
    run: |conditions| study(conditions, if conditions.full { [7, 8] } else { [3, 2] }),
};

/// Repetitions of every cell, and further ones of cells with a timeout.
type Repetitions = [u32; 2];

/// So much longer than without loss, in ms: a timeout was waited for. The shortest is 200 ms beyond the
/// round trip; a repair by fast retransmit takes a round trip and the growing of the window after it.
pub(super) fn timeout_ms(line: Line) -> f64 {
    200.0 + 2.0 * f64::from(line.ms)
}

/// The line on which the emulation is held against what can be computed.
pub(super) const CHECKED: Line = Line { kbit: 300, ms: 10 };

/// Transactions without loss and with steady delays on it.
const CHECKS: usize = 9;

/// The parts of a response time, in the order of their columns.
const PARTS: [&str; 4] = ["t_conn_ms", "t_req_ms", "t_proc_ms", "t_resp_ms"];

fn study(conditions: &Conditions<'_>, repetitions: Repetitions) -> Result<Records, Failure> {
    let mut records = Records::new();
    let [all, more] = repetitions;
    records.set_parameter("processing", PROCESSING);
    records.set_parameter("delays", format!("normal, {JITTER}, in order"));
    let repetitions_in_words = format!("{all}, and {more} more where there is a timeout");
    records.set_parameter("repetitions", repetitions_in_words);
    let mut sweep = Sweep {
        conditions,
        table: transactions(),
        lateness: Histogram::new(),
        real_time: true,
    };
    for kernel in kernel::BOTH {
        if !sweep.kernel(kernel, repetitions)? {
            break;
        }
    }
    for (name, share) in [("lateness p50 us", 0.5), ("lateness p99 us", 0.99)] {
        records.set_number(name, sweep.lateness.quantile(share).as_micros_f64());
    }
    let granted = ["not granted", "granted"][usize::from(sweep.real_time)];
    records.set_parameter("real-time priority", granted);
    records.set_table("transactions", sweep.table);
    summarise(&mut records);
    Ok(records)
}

fn transactions() -> Table {
    Table::new([
        "kernel",
        "service",
        "kbit",
        "ms",
        "position",
        "varies",
        "well",
        "exact",
        "again",
        "response_ms",
        "t_conn_ms",
        "t_req_ms",
        "t_proc_ms",
        "t_resp_ms",
    ])
}

struct Sweep<'a> {
    conditions: &'a Conditions<'a>,
    table: Table,
    lateness: Histogram,
    real_time: bool,
}

impl Sweep<'_> {
    /// Everything for one kernel; false when stopped.
    fn kernel(&mut self, kernel: &Kernel, [all, more]: Repetitions) -> Result<bool, Failure> {
        let steady = Job {
            service: &AUTHOR,
            line: CHECKED,
            lost: 0,
            varies: false,
        };
        let cells = cells();
        let mut jobs = vec![steady; CHECKS];
        jobs.extend((0..all).flat_map(|_| cells.iter().copied()));
        let Some(measured) = self.jobs(kernel, &jobs)? else {
            return Ok(false);
        };
        let mut again = Vec::new();
        let of_cells = &measured[CHECKS..];
        for (place, cell) in cells.iter().enumerate() {
            let times = |place: usize| {
                let repetitions = of_cells.iter().skip(place).step_by(cells.len());
                repetitions.filter_map(response_ms)
            };
            let lossless = times(place - cell.lost as usize).fold(f64::INFINITY, f64::min);
            if times(place).any(|ms| ms > lossless + timeout_ms(cell.line)) {
                again.push(*cell);
            }
        }
        Ok(self.jobs(kernel, &again.repeat(more as usize))?.is_some())
    }

    /// Makes these transactions and writes them down; none when stopped.
    fn jobs(&mut self, kernel: &Kernel, jobs: &[Job]) -> Result<Option<Vec<Measured>>, Failure> {
        let mut all = Vec::with_capacity(jobs.len());
        for part in jobs.chunks(MOST) {
            let name = format!("{} {}", kernel.key, self.table.len());
            let told = |over: usize| {
                let words = format!("{}, {} transactions", kernel.name, part.len());
                let progress = self.conditions.progress;
                progress.step(over as u64, part.len() as u64, &words);
            };
            let seed = self.conditions.seed.child(&name);
            let Some(run) = rig::run(kernel, part, seed, self.conditions, told)? else {
                return Ok(None);
            };
            self.lateness.merge(&run.outcome.lateness);
            self.real_time &= run.outcome.real_time;
            for (job, measured) in part.iter().zip(&run.measured) {
                self.table.push(row(kernel, job, measured));
            }
            all.extend(run.measured);
        }
        Ok(Some(all))
    }
}

/// Every line with every position of both services, the one without loss first.
fn cells() -> Vec<Job> {
    let of = |service: &'static Service| {
        line::all().flat_map(move |line| {
            (0..=service.packets()).map(move |lost| Job {
                service,
                line,
                lost,
                varies: true,
            })
        })
    };
    service::BOTH.into_iter().flat_map(of).collect()
}

/// The study's response time, of which the time that the client's program takes is no part.
fn response_ms(measured: &Measured) -> Option<f64> {
    let parts = measured.response.as_ref().map(parts)?;
    Some(parts.iter().map(|part| part.as_millis_f64()).sum())
}

fn parts(response: &Response) -> [Span; PARTS.len()] {
    [
        response.t_conn,
        response.t_req,
        response.t_proc,
        response.t_resp,
    ]
}

fn row(kernel: &Kernel, job: &Job, measured: &Measured) -> Vec<Value> {
    let mut row = vec![kernel.key.into(), job.service.key.into()];
    row.extend([job.line.kbit, job.line.ms, job.lost].map(|n| Value::from(u64::from(n))));
    let well = measured.ended == Ended::Well;
    row.extend([job.varies, well, measured.exact].map(|is| Value::from(u64::from(is))));
    let again = measured
        .response
        .map_or(f64::NAN, |response| f64::from(response.again));
    row.extend([again, response_ms(measured).unwrap_or(f64::NAN)].map(Value::from));
    let parts = measured.response.as_ref().map(parts);
    row.extend(
        parts
            .into_iter()
            .flatten()
            .map(|part| Value::from(part.as_millis_f64())),
    );
    row
}

/// Each cell's middle and range, and its parts.
fn summarise(records: &mut Records) {
    let mut cells = Table::new([
        "kernel",
        "service",
        "kbit",
        "ms",
        "position",
        "transactions",
        "median_ms",
        "low_ms",
        "high_ms",
        "t_conn_ms",
        "t_req_ms",
        "t_proc_ms",
        "t_resp_ms",
    ]);
    let mut groups: BTreeMap<_, Vec<Row<'_>>> = BTreeMap::new();
    let rows = records.table("transactions").rows();
    for row in rows.filter(|row| row.number("varies") == 1.0) {
        let place = ["kbit", "ms", "position"].map(|column| row.number(column) as u64);
        let key = (row.text("kernel"), row.text("service"), place);
        groups.entry(key).or_default().push(row);
    }
    for ((kernel, service, place), rows) in groups {
        let of = |column: &str| {
            let values = rows.iter().map(|row| row.number(column));
            let mut values: Vec<f64> = values.filter(|ms| ms.is_finite()).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let times = of("response_ms");
        let end = |end: Option<&f64>| end.copied().unwrap_or(f64::NAN);
        let mut row = vec![kernel.into(), service.into()];
        row.extend(place.map(Value::from));
        row.push(Value::from(rows.len() as u64));
        row.extend([middle(&times), end(times.first()), end(times.last())].map(Value::from));
        row.extend(PARTS.map(|part| Value::from(middle(&of(part)))));
        cells.push(row);
    }
    records.set_table("cells", cells);
}

/// The median of values in order; not a number where there are none.
fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
    }
}

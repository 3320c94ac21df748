//! The runs of one study, one after another: every transaction in one table, and how far the
//! emulator can be believed in all of them together.
//!
//! Whatever a study varies, its transactions are written down alike, so that one set of checks
//! speaks about the instrument in all of them.

use posthaste_emulator::response::Response;
use posthaste_emulator::transaction::Ended;
use posthaste_emulator::{TcpCounters, agent};
use posthaste_stats::Histogram;

use super::line::JITTER;
use super::rig::{self, Ends, Job, MOST, Measured, PROCESSING};
use crate::figure::{Conditions, Failure};
use crate::records::{Records, Table, Value};

/// The parts of a response time, in the order of their columns.
pub(super) const PARTS: [&str; 4] = ["t_conn_ms", "t_req_ms", "t_proc_ms", "t_resp_ms"];

/// The runs of a study.
pub(super) struct Campaign<'a> {
    conditions: &'a Conditions<'a>,
    table: Table,
    lateness: Histogram,
    real_time: bool,
    /// Packets that were lost beside those that the links dropped.
    lost: u64,
    /// Packets that were not written down.
    unseen: u64,
}

/// What came of some transactions.
pub(super) struct Results {
    pub(super) measured: Vec<Measured>,
    /// What the server's kernel has counted.
    pub(super) kernel: TcpCounters,
    /// What the agent did, where there was one.
    pub(super) agent: Option<agent::Counters>,
}

impl<'a> Campaign<'a> {
    pub(super) fn new(conditions: &'a Conditions<'a>) -> Self {
        Self {
            conditions,
            table: transactions(),
            lateness: Histogram::new(),
            real_time: true,
            lost: 0,
            unseen: 0,
        }
    }

    /// Makes these transactions, [`MOST`] at most, and writes them down under `key`; `name` is what a
    /// person is told. Nothing when stopped.
    pub(super) fn run(
        &mut self,
        (key, name): (&str, &str),
        ends: &Ends,
        jobs: &[Job],
    ) -> Result<Option<Results>, Failure> {
        if jobs.len() > MOST {
            return Err(format!("{} transactions in one run: {MOST} at most", jobs.len()).into());
        }
        let told = |over: usize| {
            let words = format!("{name}, {} transactions", jobs.len());
            let progress = self.conditions.progress;
            progress.step(over as u64, jobs.len() as u64, &words);
        };
        let seed = format!("{key} {}", self.table.len());
        let seed = self.conditions.seed.child(&seed);
        let Some(run) = rig::run(ends, jobs, seed, self.conditions, told)? else {
            return Ok(None);
        };
        let outcome = run.outcome;
        self.lateness.merge(&outcome.lateness);
        self.real_time &= outcome.real_time;
        for way in [&outcome.up, &outcome.down] {
            self.lost += way.bypassed.overrun + way.bypassed.unsent;
        }
        self.unseen += outcome.unseen;
        for (job, measured) in jobs.iter().zip(&run.measured) {
            self.table.push(row(key, ends, job, measured));
        }
        Ok(Some(Results {
            measured: run.measured,
            kernel: run.kernel,
            agent: outcome.duplicate_acks,
        }))
    }

    /// Everything that was measured, and what it was measured with.
    pub(super) fn records(self) -> Records {
        let mut records = Records::new();
        records.set_parameter("processing", PROCESSING);
        records.set_parameter("delays", format!("normal, {JITTER}, in order"));
        for (name, share) in [("lateness p50 us", 0.5), ("lateness p99 us", 0.99)] {
            records.set_number(name, self.lateness.quantile(share).as_micros_f64());
        }
        records.set_number("lost", self.lost as f64);
        records.set_number("unseen", self.unseen as f64);
        let granted = ["not granted", "granted"][usize::from(self.real_time)];
        records.set_parameter("real-time priority", granted);
        records.set_table("transactions", self.table);
        records
    }
}

fn transactions() -> Table {
    Table::new([
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
    ])
}

fn row(key: &str, ends: &Ends, job: &Job, measured: &Measured) -> Vec<Value> {
    let traced = &measured.traced;
    let mut row = vec![key.into(), job.service.key.into()];
    let mut positions = job.drops.positions();
    let place = [job.line.kbit, job.line.ms].map(Some);
    let lost = [positions.next(), positions.next()];
    row.extend(
        [place, lost]
            .concat()
            .into_iter()
            .map(|n| count(n.unwrap_or(0))),
    );
    let well = measured.ended == Ended::Well;
    let exact = traced.is_exact(job.drops);
    let displaced = traced.is_displaced(job, ends.segment);
    row.extend([job.varies, well, exact, displaced].map(|is| count(is.into())));
    let late = traced.is_late_loss(job.service, ends.segment);
    row.extend([traced.packets, traced.dropped.len() as u32, late.into()].map(count));
    let again = traced.response.map(|response| f64::from(response.again));
    row.push(again.unwrap_or(f64::NAN).into());
    row.extend(traced.timeouts().map(count));
    let total = traced.response_time().map(|time| time.as_millis_f64());
    row.push(total.unwrap_or(f64::NAN).into());
    let parts = |Response { time: of, .. }| [of.t_conn, of.t_req, of.t_proc, of.t_resp];
    let parts = traced.response.map(parts).into_iter().flatten();
    row.extend(parts.map(|part| Value::from(part.as_millis_f64())));
    row
}

fn count(number: u32) -> Value {
    u64::from(number).into()
}

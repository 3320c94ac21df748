//! The runs of one study, one after another: every transaction in one table, and how far the
//! emulator can be believed in all of them together.
//!
//! Whatever a study varies, its transactions are written down alike, so that one set of checks
//! speaks about the instrument in all of them.

use posthaste_emulator::transaction::Ended;
use posthaste_emulator::{TcpCounters, agent};
use posthaste_stats::Histogram;
use posthaste_units::{Seed, Span};

use super::account;
use super::line::JITTER;
use super::rig::{self, Ends, Job, MOST, Measured, PROCESSING};
use crate::figure::{Conditions, Failure};
use crate::records::{Records, Table};

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
    /// What the links drew their delays by.
    pub(super) seed: Seed,
    /// CLOCK_MONOTONIC when all their times were 0.
    pub(super) origin: Span,
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
            table: account::table(),
            lateness: Histogram::new(),
            real_time: true,
            lost: 0,
            unseen: 0,
        }
    }

    /// Makes these transactions, [`MOST`] at most, and writes them down under `key`; `name` is what a
    /// person is told. When stopped, what was over by then is written down, and nothing is given back.
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
        let run = rig::run(ends, jobs, seed, self.conditions, told)?;
        let outcome = run.outcome;
        self.lateness.merge(&outcome.lateness);
        self.real_time &= outcome.real_time;
        for way in [&outcome.up, &outcome.down] {
            self.lost += way.bypassed.overrun + way.bypassed.unsent;
        }
        self.unseen += outcome.unseen;
        for (job, measured) in jobs.iter().zip(&run.measured) {
            if measured.ended == Ended::Stopped {
                continue;
            }
            let well = measured.ended == Ended::Well;
            let row = account::row((key, ends.segment), job, well, &measured.traced);
            self.table.push(row);
        }
        if run.stopped {
            return Ok(None);
        }
        Ok(Some(Results {
            seed,
            origin: outcome.origin,
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

//! The sequence of runs of one study: all transactions in one table, and the accuracy of the emulator over all of them.
//!
//! All studies use the same table, so that one set of checks covers the instrument in all of them.

use posthaste_emulator::transaction::TransactionEnd;
use posthaste_emulator::{TcpCounters, agent};
use posthaste_stats::Histogram;
use posthaste_study::{Conditions, Failure, RecordTable, Records};
use posthaste_units::{Seed, Span};

use super::columns;
use super::job::{Job, PROCESSING};
use super::line::JITTER;
use super::testbed::{self, EmulatedRun, Ends, MOST};
use crate::testbed::describe_real_time;

/// Runs of a study.
pub(super) struct Campaign<'a> {
    conditions: &'a Conditions<'a>,
    table: RecordTable,
    lateness: Histogram,
    real_time: bool,
    /// Lost packets that the links did not drop.
    lost: u64,
    /// Packets that were not recorded.
    unseen: u64,
}

/// Results of some transactions.
pub(super) struct Results {
    /// Seed of the links' delays.
    pub(super) seed: Seed,
    /// CLOCK_MONOTONIC at time 0 of the run.
    pub(super) origin: Span,
    pub(super) measured: Vec<EmulatedRun>,
    /// Counters of the server's kernel.
    pub(super) kernel: TcpCounters,
    /// Counters of the agent, if there was one.
    pub(super) agent: Option<agent::AgentCounters>,
}

impl<'a> Campaign<'a> {
    pub(super) fn new(conditions: &'a Conditions<'a>) -> Self {
        Self {
            conditions,
            table: columns::table(),
            lateness: Histogram::new(),
            real_time: true,
            lost: 0,
            unseen: 0,
        }
    }

    /// Runs the transactions and records them under `key`. `name` is for progress messages. Fails with more than
    /// [`MOST`]. If stopped, it records the finished transactions and returns `None`.
    pub(super) fn run(
        &mut self,
        key: &str,
        name: &str,
        ends: &Ends,
        jobs: &[Job],
    ) -> Result<Option<Results>, Failure> {
        if jobs.len() > MOST {
            return Err(format!("{} transactions in one run: {MOST} at most", jobs.len()).into());
        }
        let report = |over: usize| {
            let message = format!("{name}, {} transactions", jobs.len());
            let progress = self.conditions.progress;
            progress.step(over as u64, jobs.len() as u64, &message);
        };
        let seed = format!("{key} {}", self.table.len());
        let seed = self.conditions.seed.child(&seed);
        let run = testbed::run(ends, jobs, seed, self.conditions, report)?;
        let outcome = run.outcome;
        self.lateness.merge(&outcome.lateness);
        self.real_time &= outcome.real_time;
        for way in [&outcome.up, &outcome.down] {
            self.lost += way.bypassed.overrun + way.bypassed.unsent;
        }
        self.unseen += outcome.unseen;
        for (job, measured) in jobs.iter().zip(&run.measured) {
            if measured.ended == TransactionEnd::Stopped {
                continue;
            }
            let well = measured.ended == TransactionEnd::Well;
            let row = columns::row(key, ends.segment, job, well, &measured.traced);
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

    /// Returns the measurements with the parameters of the instrument.
    pub(super) fn records(self) -> Records {
        let mut records = Records::new();
        records.set_parameter("processing", PROCESSING);
        records.set_parameter("delays", format!("normal, {JITTER}, in order"));
        for (name, share) in [("lateness p50 us", 0.5), ("lateness p99 us", 0.99)] {
            records.set_number(name, self.lateness.quantile(share).as_micros_f64());
        }
        records.set_number("lost", self.lost as f64);
        records.set_number("unseen", self.unseen as f64);
        describe_real_time(&mut records, self.real_time);
        records.set_table("transactions", self.table);
        records
    }
}

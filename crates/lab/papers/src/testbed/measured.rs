//! Result of one run of the generator against a server, and the table of such runs.

use std::time::Instant;

use posthaste_load::{Outcome, Outcomes, Pace, Plan, Run};
use posthaste_stats::Histogram;
use posthaste_study::{Failure, RecordTable, RecordValue, lab::Counters};

use super::sweep;

/// Work of a server so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Seconds of CPU time, and seconds of waiting for a processor.
    pub(crate) used: f64,
    pub(crate) waited: f64,
    pub(crate) replies: f64,
    /// Replies to clients that did not refuse compression, and the compressed ones among them.
    pub(crate) open: f64,
    pub(crate) packed: f64,
    /// Uncompressed replies to clients that asked for compression.
    pub(crate) denied: f64,
}

/// One run of the generator.
pub(crate) struct MeasuredRun {
    pub(crate) run: Run,
    closed: bool,
    /// Requests in the plan.
    planned: f64,
    /// Seconds from the start to the end of all activity.
    lasted: f64,
    pub(crate) kernel: Counters,
    pub(crate) done: Done,
}

/// Runs `plan` by `run`. `done` reads the work of the server so far. `None` if it was stopped early, because a partial
/// run proves nothing.
pub(crate) fn measure(
    plan: &Plan,
    done: impl Fn() -> Result<Done, Failure>,
    run: impl FnOnce() -> Result<Run, Failure>,
) -> Result<Option<MeasuredRun>, Failure> {
    let (kernel, before) = (Counters::read()?, done()?);
    let begun = Instant::now();
    let run = run()?;
    let lasted = begun.elapsed().as_secs_f64();
    let kernel = Counters::read()? - kernel;
    let done = done()?.since(before);
    Ok((!run.stopped).then_some(MeasuredRun {
        planned: sweep::planned(plan),
        closed: matches!(plan.pace, Pace::Closed { .. }),
        run,
        lasted,
        kernel,
        done,
    }))
}

impl Done {
    /// Work done since `then`.
    pub(crate) fn since(self, then: Self) -> Self {
        Self {
            used: self.used - then.used,
            waited: self.waited - then.waited,
            replies: self.replies - then.replies,
            open: self.open - then.open,
            packed: self.packed - then.packed,
            denied: self.denied - then.denied,
        }
    }
}

impl MeasuredRun {
    /// The measured part of the run, with the response times of its complete replies and its duration in seconds: the
    /// last step, or the whole run without steps.
    fn part(&self) -> (&Outcomes, Histogram, f64) {
        match self.run.steps.last() {
            Some(step) => (
                &step.part.outcomes,
                step.part.responses.answered(),
                step.duration.as_secs_f64(),
            ),
            None => (
                &self.run.outcomes,
                self.run.response.histogram().clone(),
                self.run.duration.as_secs_f64(),
            ),
        }
    }

    /// The 99th percentile of all requests due in the measured part, in ms. Infinite if it falls among requests without
    /// a reply.
    fn due_p99(&self) -> f64 {
        let p99 = match self.run.steps.last() {
            Some(step) => step.part.responses.all().quantile(0.99),
            None => self.run.response.distribution().quantile(0.99),
        };
        p99.known().map_or(f64::INFINITY, |p99| p99.as_millis_f64())
    }

    /// Successful replies per second to the requests due in the measured part. A closed loop ends with one request of
    /// each client under way; there, the replies that arrived during the run.
    pub(crate) fn throughput(&self) -> f64 {
        if self.closed {
            return self.run.served as f64 / self.run.duration.as_secs_f64();
        }
        let (outcomes, _, seconds) = self.part();
        outcomes[Outcome::Ok] as f64 / seconds
    }

    /// Successful replies that arrived in the measured part.
    fn served(&self) -> u64 {
        let last = self.run.steps.last();
        last.map_or(self.run.served, |step| step.part.served)
    }

    /// Mean bytes of a reply with its header.
    pub(crate) fn bytes(&self) -> f64 {
        self.run.bytes_received as f64 / self.run.outcomes[Outcome::Ok] as f64
    }

    /// Seconds of CPU time per reply.
    pub(crate) fn cost(&self) -> f64 {
        self.done.used / self.run.outcomes[Outcome::Ok] as f64
    }

    /// Compressed share of the replies that could be compressed, by the gateway's own counters.
    pub(crate) fn packed(&self) -> f64 {
        self.done.packed / self.done.open
    }

    /// Multiplies the CPU time by the slowdown of a simulated slower machine.
    pub(crate) fn acted(mut self, slowdown: u32) -> Self {
        self.done.used *= f64::from(slowdown);
        self
    }

    /// Requests without a connection or without an acknowledgement, per second.
    fn rejected(&self) -> f64 {
        let (outcomes, _, seconds) = self.part();
        (outcomes[Outcome::ConnectAborted] + outcomes[Outcome::Unanswered]) as f64 / seconds
    }

    /// A row of [`runs`], with the compressed share of the replies.
    pub(crate) fn row(
        &self,
        who: &str,
        load: f64,
        repetition: u64,
        packed: f64,
    ) -> Vec<RecordValue> {
        let own = [
            packed,
            self.done.denied,
            self.bytes(),
            self.done.used / self.lasted,
            self.done.waited / self.lasted,
            self.kernel.listen_drops as f64,
            self.kernel.syn_retransmits as f64,
        ];
        self.row_with(who, load, repetition, &own)
    }

    /// A row of [`runs_with`]: the identification of the run, then all measurements, with those of the study's own
    /// columns.
    pub(crate) fn row_with(
        &self,
        who: &str,
        load: f64,
        repetition: u64,
        own: &[f64],
    ) -> Vec<RecordValue> {
        let (outcomes, response, seconds) = self.part();
        let (summary, lateness) = (response.summary(), self.run.lateness.summary());
        let count = |count: u64| count as f64;
        let mut numbers = vec![
            load,
            count(repetition),
            seconds,
            count(self.run.intended),
            count(self.run.attempted()),
        ];
        numbers.extend(self.run.outcomes.iter().map(|(_, outcome)| count(outcome)));
        numbers.extend([
            count(outcomes.total()) / seconds,
            self.throughput(),
            self.rejected(),
            summary.mean,
            summary.p50,
            summary.p99,
            lateness.p99,
            lateness.max,
        ]);
        numbers.extend(own);
        numbers.extend([self.planned, count(self.served()) / seconds, self.due_p99()]);
        let numbers = numbers.into_iter().map(RecordValue::from);
        [who.into()].into_iter().chain(numbers).collect()
    }
}

/// The table of a proxy's runs, without rows.
pub(crate) fn runs() -> RecordTable {
    let own = [
        "packed",
        "denied",
        "reply_bytes",
        "busy",
        "waited",
        "listen_drops",
        "syn_retransmits",
    ];
    runs_with("who", &own)
}

/// The table of runs, without rows. `who` names the column of the server under test, `own` those of the study alone.
/// Rates and times are of the measured part, counts of the whole run.
pub(crate) fn runs_with(who: &str, own: &[&str]) -> RecordTable {
    let first = [
        who,
        "load",
        "repetition",
        "seconds",
        "intended",
        "attempted",
    ];
    let measured = [
        "offered_per_s",
        "throughput_per_s",
        "rejected_per_s",
        "response_ms",
        "response_p50_ms",
        "response_p99_ms",
        "lateness_p99_ms",
        "lateness_max_ms",
    ];
    let last = ["planned", "served_per_s", "due_p99_ms"];
    let outcomes = Outcome::ALL.map(Outcome::name);
    let columns = [&first[..], &outcomes, &measured, own, &last].concat();
    RecordTable::with(columns.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_runs_names_every_outcome_in_its_order() {
        let mut table = runs();
        table.push((0..64u64).map(RecordValue::from));
        let row = table.rows().next().unwrap();
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(row.number(outcome.name()), 6.0 + index as f64, "{outcome}");
        }
    }
}

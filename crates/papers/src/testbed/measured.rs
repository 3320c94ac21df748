//! Result of one run of the generator against a [`ProxyUnderTest`](super::proxy::ProxyUnderTest), and the table of such runs.

use posthaste_load::{Outcome, Outcomes, Run};
use posthaste_stats::Histogram;
use posthaste_study::{RecordTable, RecordValue, lab::Counters};

/// Work of a proxy so far.
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
    pub(crate) closed: bool,
    /// Requests in the plan.
    pub(crate) planned: f64,
    /// Seconds from the start to the end of all activity.
    pub(crate) lasted: f64,
    pub(crate) kernel: Counters,
    pub(crate) done: Done,
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

    /// A row of [`runs`]: the identification of the run, the compressed share, then all measurements.
    pub(crate) fn row(
        &self,
        who: &str,
        load: f64,
        repetition: u64,
        packed: f64,
    ) -> Vec<RecordValue> {
        let (outcomes, response, seconds) = self.part();
        let (summary, lateness) = (response.summary(), self.run.lateness.summary());
        let all = &self.run.outcomes;
        let unconnected = outcomes[Outcome::ConnectAborted] + outcomes[Outcome::Unanswered];
        let mut row: Vec<RecordValue> = vec![who.into(), load.into(), repetition.into()];
        row.extend(
            [
                seconds,
                self.run.intended as f64,
                self.run.attempted() as f64,
            ]
            .map(RecordValue::from),
        );
        row.extend(all.iter().map(|(_, count)| RecordValue::from(count)));
        row.extend([
            RecordValue::from(outcomes.total() as f64 / seconds),
            self.throughput().into(),
            (unconnected as f64 / seconds).into(),
            summary.mean.into(),
            summary.p50.into(),
            summary.p99.into(),
            lateness.p99.into(),
            lateness.max.into(),
            packed.into(),
            self.done.denied.into(),
            self.bytes().into(),
            (self.done.used / self.lasted).into(),
            (self.done.waited / self.lasted).into(),
            self.kernel.listen_drops.into(),
            self.kernel.syn_retransmits.into(),
            self.planned.into(),
            (self.served() as f64 / seconds).into(),
            self.due_p99().into(),
        ]);
        row
    }
}

/// The table of runs, without rows. Rates and times are of the measured part, counts of the whole run.
pub(crate) fn runs() -> RecordTable {
    let first = [
        "who",
        "load",
        "repetition",
        "seconds",
        "intended",
        "attempted",
    ];
    let last = [
        "offered_per_s",
        "throughput_per_s",
        "rejected_per_s",
        "response_ms",
        "response_p50_ms",
        "response_p99_ms",
        "lateness_p99_ms",
        "lateness_max_ms",
        "packed",
        "denied",
        "reply_bytes",
        "busy",
        "waited",
        "listen_drops",
        "syn_retransmits",
        "planned",
        "served_per_s",
        "due_p99_ms",
    ];
    let outcomes = Outcome::ALL.map(Outcome::name);
    RecordTable::with(first.iter().chain(&outcomes).chain(&last).copied())
}

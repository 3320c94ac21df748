//! The store writer's thread. A turn: collect a batch, check the limits, commit, update the index, acknowledge.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_qos::index::{Full, Limits};

use super::admission::Admission;
use super::outage::Outage;
use super::{Job, Kept, ReplySender, StoreCall, WriteReply};
use crate::index_build::IndexBuild;
use crate::registry::Registry;
use crate::store::{Log, Store, StoreError, Write, WriteOutcome};

/// Approximate number of offers per transaction.
const TOGETHER: usize = 1_000;
/// Work, in offers, charged for reading all offers of a provider for a type.
const ALL_OF: usize = 100;
/// Work, in offers, charged for a call about accounts: a transaction of its own.
const CALL: usize = 50;
/// Interval of counts of accounts. A count reads all of them.
const COUNT: Duration = Duration::from_secs(10);
/// Maximum number of changes applied to the registry at once. Lookups wait meanwhile.
const STEP: usize = 256;
/// Interval for the removal of expired offers and the clean-up of the store.
const SECOND: Duration = Duration::from_secs(1);
/// Interval of checks of the store while idle. An outage is reported within a second.
const LOOK: Duration = Duration::from_millis(300);
/// Delay of the next clean-up if there is more to delete. Writes run in between.
const MOMENT: Duration = Duration::from_millis(20);

/// State of the store writer's thread.
pub(super) struct WriterThread {
    store: Box<dyn Store>,
    registry: Arc<Registry>,
    jobs: Receiver<Job>,
    keep: Kept,
    limits: Limits,
    /// Number of the last change applied to the registry.
    number: u64,
    outage: Option<Outage>,
    /// True if the last write failed. A full disk can still be read.
    refuses: bool,
    /// Time of the next periodic work.
    next: Instant,
    /// Time of the next count of accounts.
    next_count: Instant,
}

/// Jobs of one turn.
#[derive(Default)]
struct Batch {
    writes: Vec<(Write, WriteReply)>,
    since: Vec<(u64, usize, ReplySender<Log>)>,
    calls: Vec<StoreCall>,
    stop: bool,
}

impl WriterThread {
    pub(super) fn new(
        store: Box<dyn Store>,
        registry: Arc<Registry>,
        jobs: Receiver<Job>,
        keep: Kept,
        limits: Limits,
    ) -> Self {
        Self {
            store,
            registry,
            jobs,
            keep,
            limits,
            number: 0,
            outage: None,
            refuses: false,
            next: Instant::now() + SECOND,
            next_count: Instant::now(),
        }
    }

    /// Brings the registry into step for the first time.
    pub(super) fn begin(&mut self) -> Result<(), StoreError> {
        self.load()?;
        self.follow()?;
        self.registry.set_grants(self.store.grants()?);
        Ok(())
    }

    /// Runs until a stop job arrives.
    pub(super) fn run(mut self) {
        loop {
            let batch = self.collect_batch();
            let stop = batch.stop;
            self.process(batch);
            if stop {
                return;
            }
        }
    }

    /// Stages of a turn, in order.
    fn process(&mut self, batch: Batch) {
        self.recover_when_due();
        let (writes, replies): (Vec<Write>, Vec<WriteReply>) = batch.writes.into_iter().unzip();
        let outcomes = self.commit(writes);
        // Failed writes need not wait for the log.
        if outcomes.is_ok() && self.outage.is_none() {
            self.update_index();
        }
        acknowledge(replies, &outcomes);
        self.answer_reads(batch.since);
        self.make_calls(batch.calls);
        self.work_when_due();
    }

    /// Waits for a job, then takes the other queued jobs.
    fn collect_batch(&self) -> Batch {
        let mut batch = Batch::default();
        let mut work = 0;
        let mut wait = self.time_to_wait();
        while work < TOGETHER {
            work += 1;
            match self.jobs.recv_timeout(wait) {
                Ok(Job::Write(write, waiting)) => {
                    work += write.changes.len();
                    if write.alone.is_some() {
                        work += ALL_OF;
                    }
                    batch.writes.push((write, waiting));
                }
                Ok(Job::Since {
                    number,
                    limit,
                    reply,
                }) => batch.since.push((number, limit, reply)),
                Ok(Job::Call(call)) => {
                    work += CALL;
                    batch.calls.push(call);
                }
                Ok(Job::Look) => {}
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    batch.stop = true;
                    break;
                }
                Err(RecvTimeoutError::Timeout) => break,
            }
            wait = Duration::ZERO;
        }
        // A single write may be larger; its offers are limited where it is validated.
        debug_assert!(
            batch.writes.len() + batch.since.len() <= TOGETHER,
            "a batch is too large"
        );
        batch
    }

    /// Time until the next check, retry or periodic work.
    fn time_to_wait(&self) -> Duration {
        let next = self.outage.as_ref().map(|outage| outage.next);
        let next = next.map_or(self.next, |next| next.min(self.next));
        next.saturating_duration_since(Instant::now()).min(LOOK)
    }

    /// Tries a lost store again when the pause is over.
    fn recover_when_due(&mut self) {
        let due = |outage: &Outage| outage.next <= Instant::now();
        if self.outage.as_ref().is_some_and(due) {
            self.update_index();
        }
    }

    /// Stores the writes that the limits admit.
    fn commit(&mut self, writes: Vec<Write>) -> Result<Vec<WriteOutcome>, StoreError> {
        let refused = self.check_limits(&writes);
        let checked = writes.into_iter().zip(&refused);
        let admitted = checked.filter(|(_, refused)| refused.is_none());
        let admitted: Vec<Write> = admitted.map(|(write, _)| write).collect();
        let mut done = match &*admitted {
            [] => Vec::new(),
            admitted => {
                let done = self.usable()?.commit(admitted, Timestamp::now());
                self.wrote(done.as_ref().err());
                done?
            }
        }
        .into_iter();
        let count = refused.len();
        let outcomes: Vec<WriteOutcome> = refused
            .into_iter()
            .filter_map(|refused| refused.map(WriteOutcome::Full).or_else(|| done.next()))
            .collect();
        debug_assert_eq!(
            outcomes.len(),
            count,
            "a write without an outcome, or with two"
        );
        Ok(outcomes)
    }

    /// Reason of the rejection of each write, or `None`.
    fn check_limits(&self, writes: &[Write]) -> Vec<Option<Full>> {
        let current = self.registry.read();
        let mut admission = Admission::new(&current.index, &self.limits);
        let writes = writes.iter();
        writes.map(|write| admission.admit(write).err()).collect()
    }

    /// Logs once when the store stops accepting writes, and once when it accepts them again.
    fn wrote(&mut self, error: Option<&StoreError>) {
        match error {
            Some(error) if !self.refuses => tracing::error!("nothing can be published: {error}"),
            None if self.refuses => tracing::info!("offers can be published again"),
            _ => {}
        }
        self.refuses = error.is_some();
    }

    /// Brings the registry into step, which sends the changes to readers of the stream, or records the outage.
    fn update_index(&mut self) {
        self.registry.ask();
        let done = self.follow();
        self.note(done);
    }

    /// Answers reads of the log.
    fn answer_reads(&mut self, reads: Vec<(u64, usize, ReplySender<Log>)>) {
        for (number, limit, reply) in reads {
            let log = self.usable().and_then(|store| store.since(number, limit));
            if let Err(error) = &log
                && self.outage.is_none()
            {
                self.note(Err(error.clone()));
            }
            // Sending fails if the reader no longer waits.
            let _ = reply.send(log);
        }
    }

    /// Makes calls about accounts.
    fn make_calls(&mut self, calls: Vec<StoreCall>) {
        for StoreCall(call) in calls {
            call(self.usable());
        }
    }

    /// Runs the periodic work when it is due.
    fn work_when_due(&mut self) {
        if self.next <= Instant::now() {
            let more = self.each_second();
            self.next = Instant::now() + if more { MOMENT } else { SECOND };
        }
    }

    /// Runs the periodic work. Returns true if there is more to clean up.
    fn each_second(&mut self) -> bool {
        let now = Timestamp::now();
        self.registry.expire(now);
        if self.outage.is_some() {
            return false;
        }
        let grants = self.store.grants();
        self.note(grants.map(|grants| self.registry.set_grants(grants)));
        let Kept {
            changes, charges, ..
        } = self.keep;
        let tidied = self.usable().and_then(|store| {
            let more = store.tidy(now, changes)?;
            Ok(store.tidy_accounts(now, charges)? || more)
        });
        self.count_when_due(now);
        match tidied {
            Ok(more) => more,
            Err(error) => {
                self.wrote(Some(&error));
                false
            }
        }
    }

    /// Counts the accounts, for metrics. After an error the last counts stay, and the outage is reported.
    fn count_when_due(&mut self, now: Timestamp) {
        if self.next_count > Instant::now() {
            return;
        }
        self.next_count = Instant::now() + COUNT;
        let counts = self.usable().and_then(|store| store.count_accounts(now));
        if let Ok(counts) = counts {
            self.keep.metrics.accounts.counted(counts);
        }
    }

    /// Applies the changes in the log after [`WriterThread::number`].
    fn follow(&mut self) -> Result<(), StoreError> {
        loop {
            match self.store.since(self.number, STEP)? {
                Log::Forgotten => {
                    tracing::warn!(
                        number = self.number,
                        "the log does not go on from here: all offers are loaded again"
                    );
                    self.load()?;
                }
                Log::Changes(changes) => {
                    debug_assert!(
                        changes.len() <= STEP,
                        "the store returned more changes than requested"
                    );
                    let full = changes.len() == STEP;
                    if let Some(last) = changes.last() {
                        debug_assert!(last.number > self.number, "the log went back");
                        self.number = last.number;
                        self.registry.apply(changes);
                    }
                    if !full {
                        self.registry.in_step(Duration::ZERO);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn load(&mut self) -> Result<(), StoreError> {
        let mut build = IndexBuild::new(self.registry.empty());
        let mut loaded = 0;
        self.number = self.store.load(&mut |key, offer| {
            loaded += 1;
            build.take(key, offer);
        })?;
        let (index, refused) = build.done();
        debug_assert_eq!(
            index.len() + refused,
            loaded,
            "the index is not the store's offers"
        );
        self.registry.replace(index, self.number);
        Ok(())
    }

    fn usable(&mut self) -> Result<&mut dyn Store, StoreError> {
        match &self.outage {
            Some(outage) => Err(outage.error.clone()),
            None => Ok(&mut *self.store),
        }
    }

    fn note(&mut self, done: Result<(), StoreError>) {
        self.registry.answered(done.as_ref().err());
        let before = self.outage.take();
        match (done, before) {
            (Ok(()), None) => {}
            (Ok(()), Some(before)) => before.over(Instant::now()),
            (Err(error), before) => {
                self.outage = Some(Outage::after(before, error, Instant::now()))
            }
        }
    }
}

/// Sends each writer its outcome. Sending fails if the writer no longer waits.
fn acknowledge(replies: Vec<WriteReply>, outcomes: &Result<Vec<WriteOutcome>, StoreError>) {
    for (position, waiting) in replies.into_iter().enumerate() {
        let outcome = outcomes.as_ref().map(|outcomes| outcomes[position]);
        let _ = waiting.reply.send(outcome.map_err(Clone::clone));
    }
}

//! The store writer's thread: its loop.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_qos::index::{Full, Limits};

use super::admission::Admission;
use super::trouble::Trouble;
use super::{Answer, Job, Waiting};
use crate::filling::Filling;
use crate::registry::Registry;
use crate::store::{Log, Outcome, Store, StoreError, Write};

/// Approximate number of offers per transaction.
const TOGETHER: usize = 1_000;
/// Work, in offers, charged for reading all offers of a provider for a type.
const ALL_OF: usize = 100;
/// Maximum number of changes applied to the registry at once. Lookups wait meanwhile.
const STEP: usize = 256;
/// Interval for the removal of expired offers and the clean-up of the store.
const SECOND: Duration = Duration::from_secs(1);
/// Interval of checks of the store while idle. An outage is reported within a second.
const LOOK: Duration = Duration::from_millis(300);
/// Delay of the next clean-up if there is more to delete. Writes run in between.
const MOMENT: Duration = Duration::from_millis(20);

/// State of the store writer's thread.
pub(super) struct Run {
    store: Box<dyn Store>,
    registry: Arc<Registry>,
    jobs: Receiver<Job>,
    keep: usize,
    limits: Limits,
    /// Number of the last change applied to the registry.
    number: u64,
    trouble: Option<Trouble>,
    /// True if the last write failed. A full disk can still be read.
    refuses: bool,
    /// Time of the next periodic work.
    next: Instant,
}

/// Jobs of one turn.
#[derive(Default)]
struct Asked {
    writes: Vec<(Write, Waiting)>,
    since: Vec<(u64, usize, Answer<Log>)>,
    stop: bool,
}

impl Run {
    pub(super) fn new(
        store: Box<dyn Store>,
        registry: Arc<Registry>,
        jobs: Receiver<Job>,
        keep: usize,
        limits: Limits,
    ) -> Self {
        Self {
            store,
            registry,
            jobs,
            keep,
            limits,
            number: 0,
            trouble: None,
            refuses: false,
            next: Instant::now() + SECOND,
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
            let asked = self.listen();
            let stop = asked.stop;
            self.turn(asked);
            if stop {
                return;
            }
        }
    }

    /// Waits for a job, then takes the other queued jobs.
    fn listen(&self) -> Asked {
        let mut asked = Asked::default();
        let mut work = 0;
        let mut patience = self.patience();
        while work < TOGETHER {
            work += 1;
            match self.jobs.recv_timeout(patience) {
                Ok(Job::Write(write, waiting)) => {
                    work += write.changes.len();
                    if write.alone.is_some() {
                        work += ALL_OF;
                    }
                    asked.writes.push((write, waiting));
                }
                Ok(Job::Since {
                    number,
                    limit,
                    answer,
                }) => asked.since.push((number, limit, answer)),
                Ok(Job::Look) => {}
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    asked.stop = true;
                    break;
                }
                Err(RecvTimeoutError::Timeout) => break,
            }
            patience = Duration::ZERO;
        }
        asked
    }

    fn patience(&self) -> Duration {
        let next = self.trouble.as_ref().map(|trouble| trouble.next);
        let next = next.map_or(self.next, |next| next.min(self.next));
        next.saturating_duration_since(Instant::now()).min(LOOK)
    }

    fn turn(&mut self, asked: Asked) {
        let due = |trouble: &Trouble| trouble.next <= Instant::now();
        if self.trouble.as_ref().is_some_and(due) {
            self.look();
        }
        let (writes, waiting): (Vec<Write>, Vec<Waiting>) = asked.writes.into_iter().unzip();
        let outcomes = self.commit(writes);
        // Failed writes need not wait for the log.
        if outcomes.is_ok() && self.trouble.is_none() {
            self.look();
        }
        // Sending fails if the writer no longer waits.
        for (place, waiting) in waiting.into_iter().enumerate() {
            let outcome = outcomes.as_ref().map(|outcomes| outcomes[place]);
            let _ = waiting.answer.send(outcome.map_err(Clone::clone));
        }
        for (number, limit, answer) in asked.since {
            let log = self.usable().and_then(|store| store.since(number, limit));
            if let Err(error) = &log
                && self.trouble.is_none()
            {
                self.note(Err(error.clone()));
            }
            let _ = answer.send(log);
        }
        if self.next <= Instant::now() {
            let more = self.each_second();
            self.next = Instant::now() + if more { MOMENT } else { SECOND };
        }
    }

    /// Stores the writes that the limits admit.
    fn commit(&mut self, writes: Vec<Write>) -> Result<Vec<Outcome>, StoreError> {
        let refused = self.refused(&writes);
        let admitted = writes.into_iter().zip(&refused);
        let admitted = admitted.filter(|(_, refused)| refused.is_none());
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
        let outcomes = refused.into_iter();
        Ok(outcomes
            .filter_map(|refused| refused.map(Outcome::Full).or_else(|| done.next()))
            .collect())
    }

    /// Reason of the rejection of each write, or `None`.
    fn refused(&self, writes: &[Write]) -> Vec<Option<Full>> {
        let seen = self.registry.seen();
        let mut admission = Admission::new(&seen.index, &self.limits);
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

    /// Brings the registry into step, or records the outage.
    fn look(&mut self) {
        self.registry.ask();
        let done = self.follow();
        self.note(done);
    }

    /// Runs the periodic work. Returns true if there is more to clean up.
    fn each_second(&mut self) -> bool {
        let now = Timestamp::now();
        self.registry.expire(now);
        if self.trouble.is_some() {
            return false;
        }
        let grants = self.store.grants();
        self.note(grants.map(|grants| self.registry.set_grants(grants)));
        let keep = self.keep;
        match self.usable().and_then(|store| store.tidy(now, keep)) {
            Ok(more) => more,
            Err(error) => {
                self.wrote(Some(&error));
                false
            }
        }
    }

    /// Applies the changes in the log after [`Run::number`].
    fn follow(&mut self) -> Result<(), StoreError> {
        loop {
            match self.store.since(self.number, STEP)? {
                Log::Forgotten => {
                    tracing::warn!(
                        number = self.number,
                        "the log does not go on from here: all offers are loaded anew"
                    );
                    self.load()?;
                }
                Log::Changes(changes) => {
                    let full = changes.len() == STEP;
                    if let Some(last) = changes.last() {
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
        let mut filling = Filling::of(self.registry.empty());
        self.number = self
            .store
            .load(&mut |key, offer| filling.take(key, offer))?;
        self.registry.replace(filling.done(), self.number);
        Ok(())
    }

    fn usable(&mut self) -> Result<&mut dyn Store, StoreError> {
        match &self.trouble {
            Some(trouble) => Err(trouble.error.clone()),
            None => Ok(&mut *self.store),
        }
    }

    fn note(&mut self, done: Result<(), StoreError>) {
        self.registry.answered(done.as_ref().err());
        let before = self.trouble.take();
        match (done, before) {
            (Ok(()), None) => {}
            (Ok(()), Some(before)) => before.over(Instant::now()),
            (Err(error), before) => {
                self.trouble = Some(Trouble::after(before, error, Instant::now()))
            }
        }
    }
}

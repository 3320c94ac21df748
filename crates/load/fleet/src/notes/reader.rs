//! Reads the notes of a run: live from the subject, and again from the stream after gaps and silence.
//!
//! A plain subscription survives reconnections at once. What it missed is in the stream, and comes by a new ephemeral
//! consumer. async-nats' ordered consumer is not used: it was silent for 19 s and more after an outage of 3 s.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::{HeaderMap, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::assembler::{NoteAssembler, NoteError};
use crate::nats::connection::Connection;
use crate::nats::storage::{Storage, StorageError};
use crate::protocol::envelope::{BodyCoding, CONTENT_ENCODING};
use crate::protocol::message::{NOTE_PART, NOTE_SEQ, Note, NoteHeader};
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::subjects::Subjects;

/// Silence of an agent after which the stream is read.
const SILENCE: Duration = Duration::from_millis(1500);

/// Minimum time between two readings of the stream.
const BETWEEN_READINGS: Duration = Duration::from_millis(300);

/// Interval of checks for gaps and silence.
const CHECK: Duration = Duration::from_millis(100);

/// Messages that are fetched at once.
const BATCH: usize = 256;

/// Time limit of a fetch.
const FETCH: Duration = Duration::from_secs(2);

/// Notes that wait for the caller.
const WAITING: usize = 1024;

/// A received note, or the reason why an agent cannot be trusted any more.
#[derive(Debug)]
pub struct AgentNote<S, E> {
    /// The agent.
    pub agent: AgentName,
    /// The note. After an error nothing more comes from this agent.
    pub note: Result<Note<S, E>, NoteError>,
}

/// Reader of the notes of a run. A task of its own reads; dropping this ends it.
#[derive(Debug)]
pub struct NoteReader<S, E> {
    notes: mpsc::Receiver<AgentNote<S, E>>,
    state: watch::Receiver<ReaderState>,
    task: JoinHandle<()>,
}

/// Numbers of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderState {
    /// Messages that came by the subscription.
    pub live: u64,
    /// Messages that came from the stream and were missing.
    pub recovered: u64,
    /// Readings of the stream.
    pub readings: u64,
    /// Messages of unknown agents, or without valid headers.
    pub rejected: u64,
}

struct ReadingTask<S, E> {
    connection: Connection,
    storage: Storage,
    subjects: Subjects,
    run: RunId,
    assembler: NoteAssembler,
    heard: BTreeMap<AgentName, Instant>,
    /// The stream exists since the last connection.
    is_stored: bool,
    position: StreamPosition,
    last_reading: Instant,
    notes: mpsc::Sender<AgentNote<S, E>>,
    state: watch::Sender<ReaderState>,
}

/// The part of the stream that was read.
#[derive(Default)]
struct StreamPosition {
    /// Creation of the stream, because a new one counts from 1 again.
    created: String,
    last: u64,
}

impl<S, E> NoteReader<S, E>
where
    S: DeserializeOwned + Send + 'static,
    E: DeserializeOwned + Send + 'static,
{
    /// Subscribes to the notes of these agents. To be called before they start.
    pub async fn start(
        connection: &Connection,
        subjects: &Subjects,
        run: RunId,
        agents: impl IntoIterator<Item = AgentName>,
    ) -> Result<Self, StorageError> {
        let storage = Storage::new(connection, subjects.clone());
        storage.ensure().await?;
        let pattern = subjects.notes_of_run(run);
        let live = connection.client().subscribe(pattern).await;
        let live = live.map_err(|error| StorageError::Failed {
            action: "accept a subscription",
            reason: error.to_string(),
        })?;
        let (sender, notes) = mpsc::channel(WAITING);
        let (state, seen_state) = watch::channel(ReaderState::default());
        let assembler = NoteAssembler::new(agents);
        let now = Instant::now();
        let task = ReadingTask {
            heard: assembler
                .agents()
                .map(|agent| (agent.clone(), now))
                .collect(),
            connection: connection.clone(),
            storage,
            subjects: subjects.clone(),
            run,
            assembler,
            is_stored: true,
            position: StreamPosition::default(),
            last_reading: now,
            notes: sender,
            state,
        };
        let task = tokio::spawn(task.read(live));
        Ok(Self {
            notes,
            state: seen_state,
            task,
        })
    }

    /// The next note. `None` after the last note of the last agent. Safe to cancel. The end of a lost agent never comes,
    /// so the caller sets a time limit.
    pub async fn next(&mut self) -> Option<AgentNote<S, E>> {
        self.notes.recv().await
    }

    /// Numbers so far.
    pub fn state(&self) -> ReaderState {
        *self.state.borrow()
    }
}

impl<S, E> Drop for NoteReader<S, E> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<S, E> ReadingTask<S, E>
where
    S: DeserializeOwned + Send + 'static,
    E: DeserializeOwned + Send + 'static,
{
    /// Reads until every agent has ended or the reader is dropped.
    async fn read(mut self, mut live: Subscriber) {
        let mut connects = self.connection.connects();
        let mut check = tokio::time::interval(CHECK);
        while !self.is_complete() {
            tokio::select! {
                message = live.next() => match message {
                    Some(message) => {
                        self.state.send_modify(|state| state.live += 1);
                        let headers = message.headers.unwrap_or_default();
                        self.add(&message.subject, &headers, message.payload).await;
                    }
                    // The client was closed.
                    None => return,
                },
                _ = connects.changed() => {
                    // The server may have lost its store.
                    self.is_stored = false;
                    self.read_stream().await;
                }
                _ = check.tick() => {
                    if self.is_reading_due() {
                        self.read_stream().await;
                    }
                }
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.heard
            .keys()
            .all(|agent| self.assembler.is_complete(agent))
    }

    /// True if a gap or silence of an agent calls for a reading.
    fn is_reading_due(&self) -> bool {
        let since = self.last_reading.elapsed();
        let is_lacking = |(agent, heard): (&AgentName, &Instant)| {
            let is_silent = heard.elapsed() > SILENCE && since > SILENCE;
            !self.assembler.is_complete(agent) && (is_silent || self.assembler.has_gap(agent))
        };
        since > BETWEEN_READINGS
            && self.connection.is_connected()
            && self.heard.iter().any(is_lacking)
    }

    async fn read_stream(&mut self) {
        self.state.send_modify(|state| state.readings += 1);
        // The next check tries again.
        if let Err(error) = self.try_read_stream().await {
            tracing::debug!("{error}");
        }
        self.last_reading = Instant::now();
    }

    /// Reads everything that the stream has got since the last complete reading.
    async fn try_read_stream(&mut self) -> Result<(), StorageError> {
        let failed = |error: &dyn std::fmt::Display| StorageError::Failed {
            action: "send the notes of the run",
            reason: error.to_string(),
        };
        if !self.is_stored {
            self.storage.ensure().await?;
            self.is_stored = true;
        }
        let stream = self.storage.notes().await?;
        let info = stream.cached_info();
        let (created, last) = (info.created.to_string(), info.state.last_sequence);
        if self.position.created != created {
            self.position = StreamPosition { created, last: 0 };
        }
        if last <= self.position.last {
            return Ok(());
        }
        let consumer = stream.create_consumer(Config {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: self.position.last + 1,
            },
            filter_subject: self.subjects.notes_of_run(self.run),
            ack_policy: AckPolicy::None,
            memory_storage: true,
            inactive_threshold: Duration::from_secs(30),
            ..Config::default()
        });
        let consumer = consumer.await.map_err(|error| failed(&error))?;
        let mut pending = consumer.cached_info().num_pending;
        while pending > 0 {
            let fetch = consumer.fetch().max_messages(BATCH).expires(FETCH);
            let mut batch = fetch.messages().await.map_err(|error| failed(&error))?;
            let mut count = 0;
            while let Some(message) = batch.next().await {
                let message = message.map_err(|error| failed(&error))?.message;
                let headers = message.headers.unwrap_or_default();
                let is_new = self.add(&message.subject, &headers, message.payload).await;
                self.state
                    .send_modify(|state| state.recovered += u64::from(is_new));
                count += 1;
            }
            if count == 0 {
                return Err(failed(&"the stream has fewer notes than it states"));
            }
            pending = pending.saturating_sub(count);
        }
        self.position.last = last;
        let name = &consumer.cached_info().name;
        // It ends by itself otherwise.
        let _ = stream.delete_consumer(name).await;
        Ok(())
    }

    /// Adds a message. True if it was missing.
    async fn add(&mut self, subject: &Subject, headers: &HeaderMap, body: Bytes) -> bool {
        let Some((agent, header, coding)) = self.identify(subject, headers) else {
            self.state.send_modify(|state| state.rejected += 1);
            return false;
        };
        let Some(heard) = self.heard.get_mut(&agent) else {
            self.state.send_modify(|state| state.rejected += 1);
            return false;
        };
        *heard = Instant::now();
        let before = self.assembler.count(&agent);
        let note = match self.assembler.add(&agent, header, coding, body) {
            Ok(None) => return self.assembler.count(&agent) > before,
            Ok(Some(note)) => Ok(note),
            Err(error) => {
                debug_assert!(
                    !matches!(error, NoteError::Stranger),
                    "the agents that are heard are those of the assembler"
                );
                self.heard.remove(&agent);
                Err(error)
            }
        };
        // The caller may be gone; then this task is aborted.
        let _ = self.notes.send(AgentNote { agent, note }).await;
        true
    }

    /// Agent, number and coding of a message of this run.
    fn identify(
        &self,
        subject: &str,
        headers: &HeaderMap,
    ) -> Option<(AgentName, NoteHeader, BodyCoding)> {
        let (run, agent) = self.subjects.note_source(subject)?;
        let header = |name: &str| headers.get(name).map(|value| value.as_str());
        let number = NoteHeader::read(header(NOTE_SEQ), header(NOTE_PART)).ok()?;
        let coding = BodyCoding::from_header(header(CONTENT_ENCODING)).ok()?;
        (run == self.run).then_some((agent, number, coding))
    }
}

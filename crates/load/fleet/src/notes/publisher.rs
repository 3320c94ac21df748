//! Publishes notes: numbered, one message under way, repeated until the server has acknowledged it.
//!
//! A note gets its numbers when its publication starts, and does not change afterwards: the server may have stored it
//! although no acknowledgement came. While the server is away, notes stay in the [buffer](super::NoteBuffer).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderMap, Request};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::Notify;

use super::buffer::{Merge, NoteBuffer, PendingNote};
use crate::nats::connection::Connection;
use crate::protocol::envelope::{
    BodyCoding, CONTENT_ENCODING, EncodedMessage, ProtocolVersion, encode,
};
use crate::protocol::message::{NOTE_PART, NOTE_SEQ, Note, NoteContent};
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::parts::{PartNumber, cut};
use crate::protocol::subjects::Subjects;

/// Time limit of an acknowledgement.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(2);

/// Pause after a failed publication.
const PAUSE: Duration = Duration::from_millis(100);

/// Creates the two ends of the buffer of a run.
pub fn channel<S, E>() -> (NoteSender<S, E>, NoteSource<S, E>) {
    let shared = Arc::new(SharedNotes {
        state: Mutex::new(SharedState {
            buffer: NoteBuffer::default(),
            is_closed: false,
        }),
        changed: Notify::new(),
    });
    (
        NoteSender {
            shared: shared.clone(),
        },
        NoteSource { shared },
    )
}

/// End of the loops: adds notes from any thread, and never waits for the server. Dropping it ends the publication.
#[derive(Debug)]
pub struct NoteSender<S, E> {
    shared: Arc<SharedNotes<S, E>>,
}

/// End of the publisher.
#[derive(Debug)]
pub struct NoteSource<S, E> {
    shared: Arc<SharedNotes<S, E>>,
}

#[derive(Debug)]
struct SharedNotes<S, E> {
    state: Mutex<SharedState<S, E>>,
    changed: Notify,
}

#[derive(Debug)]
struct SharedState<S, E> {
    buffer: NoteBuffer<S, E>,
    is_closed: bool,
}

/// Publisher of the notes of an agent about a run.
#[derive(Debug)]
pub struct NotePublisher {
    connection: Connection,
    subject: String,
    run: RunId,
    agent: AgentName,
    report: PublisherReport,
}

/// Numbers of a publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherReport {
    /// Acknowledged messages.
    pub messages: u64,
    /// Repeated publications.
    pub retries: u64,
    /// Messages that the server had stored before, although their acknowledgement did not come.
    pub duplicates: u64,
    /// Notes that were too long to be sent.
    pub too_long: u64,
}

impl<S: Merge, E> NoteSender<S, E> {
    /// Adds the results of a second.
    pub fn second(&self, second: u64, sum: S) {
        self.change(|state| state.buffer.add_second(second, sum));
    }

    /// Adds the results of the whole run.
    pub fn total(&self, sum: S) {
        self.change(|state| state.buffer.add_total(sum));
    }

    /// Adds the closing facts.
    pub fn end(self, end: E) {
        self.change(|state| state.buffer.add_end(end));
    }

    /// Reports that the agent has not begun.
    pub fn stood_down(self, reason: String) {
        self.change(|state| state.buffer.add_stood_down(reason));
    }
}

impl<S, E> NoteSender<S, E> {
    fn change(&self, change: impl FnOnce(&mut SharedState<S, E>)) {
        change(&mut self.shared.lock());
        self.shared.changed.notify_one();
    }
}

impl<S, E> Drop for NoteSender<S, E> {
    fn drop(&mut self) {
        self.change(|state| state.is_closed = true);
    }
}

impl<S, E> SharedNotes<S, E> {
    fn lock(&self) -> MutexGuard<'_, SharedState<S, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Merge, E> NoteSource<S, E> {
    /// Waits for the oldest note. `None` if the sender is gone and everything was taken.
    async fn next(&self) -> Option<PendingNote<S, E>> {
        loop {
            {
                let mut state = self.shared.lock();
                if let Some(note) = state.buffer.pop() {
                    return Some(note);
                }
                if state.is_closed {
                    return None;
                }
            }
            self.shared.changed.notified().await;
        }
    }
}

impl NotePublisher {
    /// A publisher of the notes of this agent.
    pub fn new(connection: Connection, subjects: &Subjects, run: RunId, agent: AgentName) -> Self {
        Self {
            connection,
            subject: subjects.notes(run, &agent),
            run,
            agent,
            report: PublisherReport::default(),
        }
    }

    /// Publishes notes until the sender is gone and everything is acknowledged.
    pub async fn publish<S, E>(mut self, source: NoteSource<S, E>) -> PublisherReport
    where
        S: Merge + Serialize,
        E: Serialize,
    {
        while let Some(note) = source.next().await {
            // The number of messages is the number of the next message.
            let seq = self.report.messages;
            let note = Note {
                v: ProtocolVersion,
                seq,
                content: numbered(note, seq),
            };
            let parts = encode(&note).map(|message| self.parts(message));
            match parts {
                Ok(Some((coding, parts))) => {
                    let next = seq + parts.len() as u64;
                    for (part, body) in parts {
                        self.deliver(part, coding, body).await;
                    }
                    // The conductor finds the note by the number of its first part.
                    assert_eq!(self.report.messages, next, "each part has a number");
                }
                Ok(None) | Err(_) => {
                    self.report.too_long += 1;
                    tracing::error!("a note about run {} is too long to be sent", self.run);
                }
            }
        }
        self.report
    }

    fn parts(&self, message: EncodedMessage) -> Option<(BodyCoding, Vec<(PartNumber, Bytes)>)> {
        let parts = cut(message.body.into(), self.connection.max_message()).ok()?;
        Some((message.coding, parts))
    }

    /// Publishes a message until it is acknowledged.
    async fn deliver(&mut self, part: PartNumber, coding: BodyCoding, body: Bytes) {
        let seq = self.report.messages;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", Subjects::note_id(self.run, &self.agent, seq));
        headers.insert(NOTE_SEQ, seq.to_string());
        headers.insert(NOTE_PART, part.to_string());
        if let Some(coding) = coding.header() {
            headers.insert(CONTENT_ENCODING, coding);
        }
        loop {
            self.connection.wait().await;
            let request = Request::new()
                .headers(headers.clone())
                .payload(body.clone());
            let request = request.timeout(Some(ACKNOWLEDGEMENT));
            let sent = self
                .connection
                .client()
                .send_request(self.subject.clone(), request);
            // The outer limit holds for the queue of the client, too.
            let reply = tokio::time::timeout(ACKNOWLEDGEMENT, sent).await;
            if let Ok(Ok(reply)) = reply
                && let Ok(Response::<PublishAck>::Ok(stored)) =
                    serde_json::from_slice(&reply.payload)
            {
                self.report.messages += 1;
                self.report.duplicates += u64::from(stored.duplicate);
                return;
            }
            self.report.retries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn numbered<S, E>(note: PendingNote<S, E>, seq: u64) -> NoteContent<S, E> {
    match note {
        PendingNote::Seconds { first, last, sum } => NoteContent::Seconds { first, last, sum },
        PendingNote::Total { sum } => NoteContent::Total { sum },
        PendingNote::StoodDown { reason } => NoteContent::StoodDown { reason },
        PendingNote::End { end } => NoteContent::End { messages: seq, end },
    }
}

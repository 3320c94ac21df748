//! Turns messages of agents into notes: each sequence number once, in any order, within bounds.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::sequences::{SequenceSet, TooScattered};
use crate::protocol::envelope::{BodyCoding, MessageError, decode};
use crate::protocol::message::{Note, NoteContent, NoteHeader};
use crate::protocol::names::AgentName;
use crate::protocol::parts::{PartError, PartJoiner};

/// Notes of the agents of one run.
#[derive(Debug)]
pub struct NoteAssembler {
    agents: BTreeMap<AgentName, AgentSequence>,
}

#[derive(Debug, Default)]
struct AgentSequence {
    seen: SequenceSet,
    count: u64,
    joiner: PartJoiner,
    /// Number of messages, known from the last note.
    messages: Option<u64>,
}

/// A message of an agent that breaks the protocol. Nothing more of this agent can be trusted.
#[derive(Debug, Error)]
pub enum NoteError {
    /// Not an agent of the run.
    #[error("it takes no part in the run")]
    Stranger,
    /// Too many gaps.
    #[error(transparent)]
    Scattered(#[from] TooScattered),
    /// Parts that do not fit.
    #[error(transparent)]
    Part(#[from] PartError),
    /// Parts without compression, although only long bodies are cut.
    #[error("a part is not compressed")]
    PlainPart,
    /// A body that is not understood.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// Header and body differ.
    #[error("a note has the number {stated} in its body and {found} in its header")]
    Number {
        /// Number in the body.
        stated: u64,
        /// Number from the header.
        found: u64,
    },
    /// A number of messages that cannot be.
    #[error("the last note counts {stated} messages before it, and has the number {found}")]
    Count {
        /// Number in the body.
        stated: u64,
        /// Number from the header.
        found: u64,
    },
    /// A second last note.
    #[error("notes follow the last note")]
    AfterEnd,
}

impl NoteAssembler {
    /// Nothing received from these agents.
    pub fn new(agents: impl IntoIterator<Item = AgentName>) -> Self {
        let agents = agents
            .into_iter()
            .map(|name| (name, AgentSequence::default()));
        Self {
            agents: agents.collect(),
        }
    }

    /// Adds a message. Returns the note that it completes. A message that was seen before has no effect.
    pub fn add<S: DeserializeOwned, E: DeserializeOwned>(
        &mut self,
        agent: &AgentName,
        header: NoteHeader,
        coding: BodyCoding,
        body: Bytes,
    ) -> Result<Option<Note<S, E>>, NoteError> {
        let agent = self.agents.get_mut(agent).ok_or(NoteError::Stranger)?;
        if !agent.seen.insert(header.seq)? {
            return Ok(None);
        }
        agent.count += 1;
        debug_assert!(
            (agent.seen.contiguous()..=agent.seen.end()).contains(&agent.count),
            "the count is that of the numbers seen"
        );
        if agent
            .messages
            .is_some_and(|messages| header.seq >= messages)
        {
            return Err(NoteError::AfterEnd);
        }
        if header.part.count() > 1 && coding != BodyCoding::Zstd {
            return Err(NoteError::PlainPart);
        }
        let Some((first, body)) = agent.joiner.add(header.seq, header.part, body)? else {
            return Ok(None);
        };
        let note: Note<S, E> = decode(&body, coding)?;
        if note.seq != first {
            return Err(NoteError::Number {
                stated: note.seq,
                found: first,
            });
        }
        let is_last = match &note.content {
            NoteContent::End { messages, .. } if *messages != first => {
                return Err(NoteError::Count {
                    stated: *messages,
                    found: first,
                });
            }
            NoteContent::End { .. } | NoteContent::StoodDown { .. } => true,
            NoteContent::Seconds { .. } | NoteContent::Total { .. } => false,
        };
        if is_last {
            let end = first + u64::from(header.part.count());
            // Numbers at or after the end would belong to further notes.
            if agent.messages.replace(end).is_some() || agent.seen.end() > end {
                return Err(NoteError::AfterEnd);
            }
        }
        Ok(Some(note))
    }

    /// True if messages of the agent are known to be missing.
    pub fn has_gap(&self, agent: &AgentName) -> bool {
        let agent = self.agents.get(agent);
        agent.is_some_and(|agent| {
            let missing = agent
                .messages
                .is_some_and(|messages| agent.seen.contiguous() < messages);
            missing || agent.seen.has_gap()
        })
    }

    /// True if every message of the agent has come.
    pub fn is_complete(&self, agent: &AgentName) -> bool {
        let agent = self.agents.get(agent);
        agent.is_some_and(|agent| agent.messages == Some(agent.seen.contiguous()))
    }

    /// Number of different messages of the agent.
    pub fn count(&self, agent: &AgentName) -> u64 {
        self.agents.get(agent).map_or(0, |agent| agent.count)
    }

    /// The agents.
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.agents.keys()
    }
}

//! Messages between conductor and agents. Plans, replies and notes carry payloads of the caller's types.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocol::allot::AgentShare;
use crate::protocol::envelope::ProtocolVersion;
use crate::protocol::names::{AgentName, FleetName, RunId};
use crate::protocol::parts::{PartError, PartNumber};
use crate::protocol::sealed::SealingKey;

/// Header with the sequence number of a note.
pub const NOTE_SEQ: &str = "Note-Seq";

/// Header with the part of a note.
pub const NOTE_PART: &str = "Note-Part";

/// Metadata with the present run of an agent.
pub const BUSY: &str = "busy";

/// Request to prepare a run with the plan `P`. The agent belongs to the run after a positive reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareRequest<P> {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The run.
    pub run: RunId,
    /// The plan, equal for all agents.
    pub plan: P,
    /// The agent's loops among the loops of all agents.
    pub share: AgentShare,
    /// Names of sealed files in the bucket of the fleet.
    pub files: Vec<String>,
    /// The key of these files.
    pub key: Option<SealingKey>,
}

/// Reply to a [`PrepareRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareReply<R> {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The result.
    pub result: PrepareResult<R>,
}

/// Result of a preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrepareResult<R> {
    /// Prepared, with facts about it, such as addresses.
    Ready(R),
    /// Not prepared, with the reason.
    Refused(String),
}

/// Request to start a prepared run at an instant, if `go` arrives before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmRequest {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The run.
    pub run: RunId,
    /// The first instant of the run on the agent's clock (CLOCK_MONOTONIC, nanoseconds).
    pub origin_ns: u64,
}

/// Reply to an [`ArmRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmReply {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The result.
    pub result: ArmResult,
}

/// Result of arming.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArmResult {
    /// Armed.
    Armed {
        /// Time until the origin.
        left_ns: u64,
    },
    /// Not armed, with the reason.
    Refused(String),
}

/// Request to do a job of a running run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRequest<J> {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The run.
    pub run: RunId,
    /// The job.
    pub job: J,
}

/// Reply to a [`JobRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobReply<R> {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The result.
    pub result: WorkResult<R>,
}

/// Result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkResult<R> {
    /// Done.
    Done(R),
    /// Not done, with the reason.
    Refused(String),
}

/// Order to all agents of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderMessage {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// The order.
    pub order: RunOrder,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunOrder {
    /// All agents are armed: start at the origin.
    Go,
    /// Not all agents could be armed: do not start. The run stays prepared.
    Cancel,
    /// Stop at this time of the run.
    Stop {
        /// Time since the origin.
        at_ns: u64,
    },
    /// The conductor is alive.
    Pulse,
    /// The conductor needs nothing more: stop and forget the run.
    Release,
}

/// A note with the sum `S` of results and the closing facts `E`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note<S, E> {
    /// The protocol version.
    pub v: ProtocolVersion,
    /// Sequence number of the message with its first part.
    pub seq: u64,
    /// The content.
    pub content: NoteContent<S, E>,
}

/// Content of a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NoteContent<S, E> {
    /// Results of these seconds of the run.
    Seconds {
        /// The first second.
        first: u64,
        /// The last second. The same as the first, unless notes had to be summed.
        last: u64,
        /// The results.
        sum: S,
    },
    /// Results of the whole run.
    Total {
        /// The results.
        sum: S,
    },
    /// The agent has not begun, and nothing follows.
    StoodDown {
        /// The reason.
        reason: String,
    },
    /// Nothing follows.
    End {
        /// Number of messages before this note.
        messages: u64,
        /// The closing facts.
        end: E,
    },
}

/// Number and part of the message of a note, from its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteHeader {
    /// Sequence number among the agent's messages about the run, from 0.
    pub seq: u64,
    /// Part of the note.
    pub part: PartNumber,
}

/// Headers that do not identify a note.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NoteHeaderError {
    /// A missing header.
    #[error("the note has no header {0}")]
    Missing(&'static str),
    /// No number in its only form.
    #[error("{NOTE_SEQ} {0:?} is not a number")]
    Seq(String),
    /// No part.
    #[error(transparent)]
    Part(#[from] PartError),
}

impl NoteHeader {
    /// Reads the values of the headers.
    pub fn read(seq: Option<&str>, part: Option<&str>) -> Result<Self, NoteHeaderError> {
        let text = seq.ok_or(NoteHeaderError::Missing(NOTE_SEQ))?;
        let part = part.ok_or(NoteHeaderError::Missing(NOTE_PART))?.parse()?;
        let number = text.parse::<u64>().ok();
        // Leading zeros and signs parse, and are no part of the form. The maximum leaves space for sums.
        let seq = number.filter(|seq| seq.to_string() == text && *seq < u64::MAX / 2);
        let seq = seq.ok_or_else(|| NoteHeaderError::Seq(text.chars().take(32).collect()))?;
        Ok(Self { seq, part })
    }
}

/// Properties of an agent, for the metadata of the NATS service API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its name.
    pub name: AgentName,
    /// Its fleet.
    pub fleet: FleetName,
    /// SHA-256 of the executable, in hexadecimal.
    pub build: String,
    /// Version and commit, for messages to users.
    pub version: String,
    /// Digest of the results of mathematical functions ([`crate::machine::numerics`]).
    pub numerics: String,
    /// Number of its event loops.
    pub loops: u32,
    /// The processor's name, for comparisons.
    pub processor: String,
    /// Maximum number of open files.
    pub descriptors: u64,
    /// Permitted targets, as configured.
    pub allow: String,
    /// Identity of the machine, to find agents that share one.
    pub machine: String,
}

/// Metadata that are no [`AgentInfo`].
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the agent states no valid {0}")]
pub struct AgentInfoError(&'static str);

impl AgentInfo {
    /// As metadata of a service.
    pub fn to_metadata(&self) -> HashMap<String, String> {
        let fields = [
            ("name", self.name.to_string()),
            ("fleet", self.fleet.to_string()),
            ("build", self.build.clone()),
            ("version", self.version.clone()),
            ("numerics", self.numerics.clone()),
            ("loops", self.loops.to_string()),
            ("processor", self.processor.clone()),
            ("descriptors", self.descriptors.to_string()),
            ("allow", self.allow.clone()),
            ("machine", self.machine.clone()),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// From metadata of a service. Unknown fields are ignored: another build may state more, and is refused by its
    /// build.
    pub fn from_metadata(metadata: &HashMap<String, String>) -> Result<Self, AgentInfoError> {
        let text = |name: &'static str| metadata.get(name).cloned().ok_or(AgentInfoError(name));
        let loops = text("loops")?.parse().ok().filter(|loops| *loops > 0);
        Ok(Self {
            name: text("name")?.parse().map_err(|_| AgentInfoError("name"))?,
            fleet: text("fleet")?
                .parse()
                .map_err(|_| AgentInfoError("fleet"))?,
            build: text("build")?,
            version: text("version")?,
            numerics: text("numerics")?,
            loops: loops.ok_or(AgentInfoError("loops"))?,
            processor: text("processor")?,
            descriptors: text("descriptors")?
                .parse()
                .map_err(|_| AgentInfoError("descriptors"))?,
            allow: text("allow")?,
            machine: text("machine")?,
        })
    }
}

impl fmt::Display for RunOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "go",
            Self::Cancel => "cancel",
            Self::Stop { .. } => "stop",
            Self::Pulse => "pulse",
            Self::Release => "release",
        })
    }
}

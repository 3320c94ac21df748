//! A packetdrill script as data: options, events with times, packets, system calls.

use std::fmt;

use posthaste_units::Span;

/// Reason for which a script gives no comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptError {
    /// Text that is not in the language.
    Malformed { line: usize, text: String },
    /// Something that the model does not have.
    Unsupported { line: usize, reason: String },
    /// The endpoint does something else.
    Differs { line: usize, text: String },
}

impl ScriptError {
    pub(super) fn malformed(line: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Malformed { line, text }
    }

    pub(super) fn unsupported(line: usize, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Unsupported { line, reason }
    }

    pub(super) fn differs(line: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Differs { line, text }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { line, text } | Self::Differs { line, text } => {
                write!(f, "line {line}: {text}")
            }
            Self::Unsupported { line, reason } => write!(f, "line {line}: {reason}"),
        }
    }
}

/// A whole script.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketdrillScript {
    /// `--name=value`, and the shell commands before the first event.
    pub(super) options: Vec<(String, String)>,
    pub(super) setup: Vec<ShellLines>,
    pub(super) events: Vec<ScriptEvent>,
}

/// Shell commands and the line of the first.
#[derive(Clone, Debug)]
pub(super) struct ShellLines {
    pub(super) line: usize,
    pub(super) text: String,
}

/// One event.
#[derive(Clone, Debug)]
pub(super) struct ScriptEvent {
    pub(super) line: usize,
    pub(super) time: EventTime,
    pub(super) action: Action,
}

/// Time of an event. Relative times count from the previous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventTime {
    /// Since the start of the script, from the first to the second.
    Absolute(Span, Span),
    /// Since the previous event.
    Relative(Span, Span),
    /// `*`: any time.
    Any,
}

impl EventTime {
    /// Returns true for a single instant.
    pub(super) fn is_instant(self) -> bool {
        match self {
            Self::Absolute(from, to) | Self::Relative(from, to) => from == to,
            Self::Any => false,
        }
    }
}

/// Kind of an event.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Packet(Packet),
    Call(SystemCall),
    Shell(String),
    Code(String),
}

/// A TCP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// `<`: from the network to the endpoint.
    pub(super) inbound: bool,
    pub(super) flags: Flags,
    pub(super) seq: u32,
    pub(super) len: u32,
    pub(super) ack: Option<u32>,
    pub(super) window: Option<u16>,
    /// None for `<...>`: any options.
    pub(super) options: Option<PacketOptions>,
}

/// Flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) psh: bool,
    pub(super) ack: bool,
}

/// Options of a TCP header. Paddings are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketOptions {
    pub(super) mss: Option<u16>,
    pub(super) scale: Option<u8>,
    pub(super) sack_ok: bool,
    pub(super) sack: Vec<[u32; 2]>,
    /// Value and echo.
    pub(super) timestamps: Option<[u32; 2]>,
}

/// A system call with its expected result.
#[derive(Clone, Debug)]
pub(super) struct SystemCall {
    pub(super) name: String,
    pub(super) arguments: Vec<Expression>,
    pub(super) result: Expression,
    /// Name of the error that belongs to a result of -1.
    pub(super) error: Option<String>,
    /// The call blocks until this time, counted as the event's time is.
    pub(super) until: Option<Span>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Number(i64),
    Word(String),
    Ellipsis,
    List(Vec<Expression>),
    /// `name = value` in a structure.
    Field(String, Box<Expression>),
}

impl Expression {
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Items of a list; none for anything else.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }
}

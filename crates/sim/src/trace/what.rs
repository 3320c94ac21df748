//! The names of what a packet was, and of why it was sent.

use posthaste_tcp::{Counters, Segment};

/// What a packet was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Opens a connection.
    Syn,
    /// Agrees to open it.
    SynAck,
    /// Carries data.
    Data,
    /// Carries data, and the end of the stream rides on it.
    DataFin,
    /// The end of the stream alone.
    Fin,
    /// Acknowledges, and nothing else.
    Ack,
    /// Acknowledges what was acknowledged before while later data are under way, and either leaves
    /// the window as it is or reports blocks: a duplicate ACK (RFC 5681, section 2).
    DupAck,
    /// Changes the window alone.
    WindowUpdate,
    /// Empty, and numbered below what comes next: asks whether the other end is still there.
    KeepAlive,
    /// Ends the connection at once.
    Rst,
}

impl What {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syn => "syn",
            Self::SynAck => "syn-ack",
            Self::Data => "data",
            Self::DataFin => "data-fin",
            Self::Fin => "fin",
            Self::Ack => "ack",
            Self::DupAck => "dupack",
            Self::WindowUpdate => "window-update",
            Self::KeepAlive => "keep-alive",
            Self::Rst => "rst",
        }
    }
}

/// Why a segment was sent, as its sender counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// Nothing of it was sent before.
    First,
    /// After duplicate acknowledgements, SACK, RACK or early retransmit.
    Fast,
    /// The retransmission timer ran out.
    Timeout,
    /// Among what an earlier timeout has declared lost.
    AfterTimeout,
    /// A tail loss probe or a copy sent in advance.
    Probe,
    /// The answer to a SYN that came again, or the like.
    Answer,
}

impl Sending {
    /// Why `segment` was sent, by what its sender had counted before it and with it.
    pub(super) fn of(segment: &Segment, before: &Counters, after: &Counters, is_new: bool) -> Self {
        let timed_out = after.timeouts > before.timeouts;
        if after.probes > before.probes {
            Self::Probe
        } else if after.fast > before.fast {
            Self::Fast
        } else if after.after_timeout > before.after_timeout || (timed_out && segment.syn) {
            if timed_out {
                Self::Timeout
            } else {
                Self::AfterTimeout
            }
        } else if is_new {
            Self::First
        } else {
            Self::Answer
        }
    }

    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Fast => "fast",
            Self::Timeout => "rto",
            Self::AfterTimeout => "after-rto",
            Self::Probe => "probe",
            Self::Answer => "answer",
        }
    }
}

//! The words in which traces tell of segments: what one was, and why it was sent.
//!
//! One vocabulary for those who know (a simulation) and for those who infer from packets alone (an
//! emulator), so that their ladders can lie side by side. How it is found out is theirs, but for
//! acknowledgements, of which what was said before decides what they are.

use std::ops::Range;

use crate::Offset;

/// What a segment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
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
    /// Acknowledges what was acknowledged before while later data are under way, and either
    /// leaves the window as it is or reports blocks: a duplicate ACK (RFC 5681, section 2).
    DupAck,
    /// Changes the window alone.
    WindowUpdate,
    /// Empty, and numbered below what comes next: asks whether the other end, or room in its
    /// window, is still there (RFC 9293, sections 3.8.4 and 3.8.6.1).
    KeepAlive,
    /// Ends the connection at once.
    Rst,
}

impl Kind {
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

    /// What an empty segment is that acknowledges a place with a window, after its sender `said` a
    /// place and a window; `blocks` where it reports some, `beyond` where data beyond its place
    /// have been sent to its sender.
    pub fn of_ack(
        now: (Offset, u16),
        said: Option<(Offset, u16)>,
        blocks: bool,
        beyond: bool,
    ) -> Self {
        match said {
            Some((place, window)) if place == now.0 => {
                let same_window = window == now.1;
                if beyond && (same_window || blocks) {
                    Self::DupAck
                } else if same_window {
                    Self::Ack
                } else {
                    Self::WindowUpdate
                }
            }
            _ => Self::Ack,
        }
    }

    /// Whether it acknowledges and does nothing else but change the window.
    pub const fn is_ack(self) -> bool {
        matches!(self, Self::Ack | Self::DupAck | Self::WindowUpdate)
    }

    /// What stands beside an arrow of a ladder, after the packet's position: which bytes or what,
    /// what it acknowledges if it does little else, and why it was sent again: `7241:8689 rto`.
    pub fn words(
        self,
        bytes: &Range<Offset>,
        acknowledges: Option<Offset>,
        sending: Option<Sending>,
    ) -> String {
        let mut words = match bytes.is_empty() {
            true => self.name().to_owned(),
            false => format!("{}:{}", bytes.start, bytes.end),
        };
        if self == Self::DataFin {
            words += " FIN";
        }
        if let Some(place) = acknowledges.filter(|_| self.is_ack()) {
            words += &format!(" {place}");
        }
        if let Some(sending) = sending.filter(|sending| *sending != Sending::First) {
            words += " ";
            words += sending.name();
        }
        words
    }
}

/// Whether a segment was sent for the first time; if not, why.
///
/// Who simulates a sender knows what it counted. Who sees packets alone infers everything but
/// `First` from three facts: which of the outstanding segments it was, whether an acknowledgement
/// had said that data sent later had arrived, and whether the sender acted promptly on an
/// acknowledgement (within half of the shortest round trip and 10 ms). A probe that carries new
/// data is then a `First` like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// Nothing of it was sent before.
    First,
    /// After acknowledgements that told of a loss, by duplicates, blocks or time; inferred where it
    /// was sent promptly (RFC 5681, RFC 6675, RFC 8985).
    Fast,
    /// The retransmission timer ran out (RFC 6298); inferred of the first outstanding segment,
    /// after silence.
    Timeout,
    /// Among what an earlier timeout has declared lost; inferred where it was sent promptly.
    AfterTimeout,
    /// A tail loss probe (RFC 8985, section 7), or a copy sent in advance; inferred of the last
    /// outstanding segment while earlier ones are missing too, after silence.
    Probe,
    /// Inferred of the only outstanding segment, for the first time again, after silence, where
    /// selective acknowledgements are in use: a timeout and a probe look the same.
    TimeoutOrProbe,
    /// The answer to a SYN that came again, or the like.
    Answer,
    /// None of these can be inferred.
    Unclear,
}

impl Sending {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Fast => "fast",
            Self::Timeout => "rto",
            Self::AfterTimeout => "after-rto",
            Self::Probe => "probe",
            Self::TimeoutOrProbe => "rto-or-probe",
            Self::Answer => "answer",
            Self::Unclear => "unclear",
        }
    }

    /// Which timer ran out; none where none did.
    pub const fn timer(self) -> Option<&'static str> {
        match self {
            Self::Timeout => Some("timeout"),
            Self::Probe => Some("probe"),
            Self::TimeoutOrProbe => Some("timeout or probe"),
            _ => None,
        }
    }
}

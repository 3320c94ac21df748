//! Vocabulary of traces: the kind of a segment, and the reason of its transmission.
//!
//! A simulation knows these values; an emulator infers them from packets. A shared vocabulary makes their ladders
//! comparable. Each has its own inference, except for acknowledgements, whose kind depends on earlier ones.

use std::ops::Range;

use crate::Offset;

/// Kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// Opens a connection.
    Syn,
    /// Accepts a connection.
    SynAck,
    /// Carries data.
    Data,
    /// Carries data and the FIN.
    DataFin,
    /// A FIN without data.
    Fin,
    /// Only acknowledges.
    Ack,
    /// Repeats an acknowledgement while later data is in flight, and either keeps the window or reports blocks: a
    /// duplicate ACK (RFC 5681, section 2).
    DupAck,
    /// Only changes the window.
    WindowUpdate,
    /// An empty segment with a sequence number below the next one. Probes the other end or its window (RFC 9293,
    /// sections 3.8.4 and 3.8.6.1).
    KeepAlive,
    /// Ends the connection at once.
    Rst,
}

impl SegmentKind {
    /// Name in traces.
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

    /// Kind of an empty segment with acknowledgement number and window `now`. `last` holds both values of the previous
    /// acknowledgement of the same sender. `blocks` is true if it has SACK blocks, `beyond` if data beyond its
    /// acknowledgement number have been sent to its sender.
    pub fn of_ack(
        now: (Offset, u16),
        last: Option<(Offset, u16)>,
        blocks: bool,
        beyond: bool,
    ) -> Self {
        match last {
            Some((number, window)) if number == now.0 => {
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

    /// Returns true if the segment only acknowledges or changes the window.
    pub const fn is_ack(self) -> bool {
        matches!(self, Self::Ack | Self::DupAck | Self::WindowUpdate)
    }

    /// Label of an arrow in a ladder, after the packet's position: the bytes or the kind, the acknowledgement number of
    /// a mere acknowledgement, and the reason of a retransmission, such as `7241:8689 rto`.
    pub fn describe(
        self,
        bytes: &Range<Offset>,
        acknowledges: Option<Offset>,
        sending: Option<Sending>,
    ) -> String {
        let mut text = if bytes.is_empty() {
            self.name().to_owned()
        } else {
            format!("{}:{}", bytes.start, bytes.end)
        };
        if self == Self::DataFin {
            text += " FIN";
        }
        if let Some(number) = acknowledges.filter(|_| self.is_ack()) {
            text += &format!(" {number}");
        }
        if let Some(sending) = sending.filter(|sending| *sending != Sending::First) {
            text += " ";
            text += sending.name();
        }
        text
    }
}

/// Reason of a transmission: the first one, or the cause of a retransmission.
///
/// A simulation knows the counters of the sender. An observer of packets infers everything but `First` from three
/// facts:
/// - the position of the segment among the outstanding ones;
/// - an earlier acknowledgement of data sent later;
/// - a prompt reaction of the sender to an acknowledgement (within half of the shortest round trip and 10 ms).
///
/// A probe with new data then counts as `First`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// First transmission.
    First,
    /// Retransmission after acknowledgements that showed a loss, by duplicates, blocks or time. Inferred if it was sent
    /// promptly (RFC 5681, RFC 6675, RFC 8985).
    Fast,
    /// Retransmission after the retransmission timer expired (RFC 6298). Inferred for the first outstanding segment,
    /// after silence.
    Timeout,
    /// Retransmission of data that an earlier timeout declared lost. Inferred if it was sent promptly.
    AfterTimeout,
    /// Tail loss probe (RFC 8985, section 7), or a copy sent in advance. Inferred for the last outstanding segment
    /// while earlier ones are missing too, after silence.
    Probe,
    /// Timeout or probe, which look the same here. Inferred for the first retransmission of the only outstanding
    /// segment, after silence, with selective acknowledgements.
    TimeoutOrProbe,
    /// Answer to a repeated SYN or a similar segment.
    Answer,
    /// No inference is possible.
    Unclear,
}

impl Sending {
    /// Name in traces.
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

    /// Name of the expired timer, if any.
    pub const fn timer(self) -> Option<&'static str> {
        match self {
            Self::Timeout => Some("timeout"),
            Self::Probe => Some("probe"),
            Self::TimeoutOrProbe => Some("timeout or probe"),
            _ => None,
        }
    }
}

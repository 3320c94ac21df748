//! The names of what a packet was, and of why it was sent once more.

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
    /// Acknowledges what was acknowledged before while later data are under way, and either
    /// leaves the window as it is or reports blocks: a duplicate ACK (RFC 5681, section 2).
    DupAck,
    /// Changes the window alone.
    WindowUpdate,
    /// Empty, and numbered one below what comes next: asks whether the other end, or room in its
    /// window, is still there (RFC 9293, sections 3.8.4 and 3.8.6.1).
    KeepAlive,
    /// Ends the connection at once.
    Rst,
    /// A datagram.
    Udp,
    /// A message of ICMP or ICMPv6.
    Icmp,
    /// A part of a larger packet.
    Fragment,
    /// Of another protocol.
    Other,
    /// Its header cannot be read, or was damaged by the link so that it does not fit.
    Unreadable,
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
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Fragment => "fragment",
            Self::Other => "other",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Whether a segment was sent for the first time; if not, why, as far as its sender's packets
/// and what had been delivered to it can tell.
///
/// A trace does not see timers. Everything but `First` is inferred from three facts: which of
/// the outstanding segments it was, whether an acknowledgement had said that data sent later had
/// arrived, and whether the sender acted promptly on an acknowledgement (within half of the
/// shortest round trip and 10 ms). A probe that carries new data is a `First` like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// Nothing of it was sent before.
    First,
    /// Promptly after an acknowledgement that told of a loss: duplicate, or with blocks of data
    /// sent later (RFC 5681, RFC 6675, RFC 8985).
    Fast,
    /// The first outstanding segment, after silence: a retransmission timeout (RFC 6298).
    Timeout,
    /// Promptly, among what an earlier timeout has declared lost.
    AfterTimeout,
    /// The last outstanding segment while earlier ones are missing too, after silence: a tail
    /// loss probe (RFC 8985, section 7).
    Probe,
    /// The only outstanding segment for the first time again, after silence, and selective
    /// acknowledgements are in use: a timeout and a probe look the same.
    TimeoutOrProbe,
    /// The answer to a SYN that came again.
    Answer,
    /// None of these.
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
}

//! Remedies for losses at a reply's end, chosen by name on top of a profile.
//!
//! A remedy changes the profile of one end and nothing else, so that what it is worth can be
//! seen on any stack: those of a 2007 study (shorter timeout, smart framing, early retransmit,
//! adaptive duplicate acknowledgements) and those that came later.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A shorter minimum of the retransmission timeout: 50 ms in all.
    ShortTimeout,
    /// Early retransmit (RFC 5827).
    EarlyRetransmit,
    /// Smaller segments, so that a reply has enough of them behind a loss.
    SmartFraming,
    /// The receiver repeats its acknowledgement by a timer from inter-arrival times, from the FIN on.
    AdaptiveAcks,
    /// The same, and the sender's FIN travels as a packet of its own.
    AdaptiveAcksOwnFin,
    /// Tail loss probe (RFC 8985).
    TailProbe,
    /// RACK (RFC 8985).
    Rack,
    /// RTO restart (RFC 7765).
    RtoRestart,
    /// The tail is sent twice at once.
    TailCopies,
    /// A parity packet covers the tail.
    TailParity,
}

impl Remedy {
    /// Every one, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::ShortTimeout,
        Self::EarlyRetransmit,
        Self::SmartFraming,
        Self::AdaptiveAcks,
        Self::AdaptiveAcksOwnFin,
        Self::TailProbe,
        Self::Rack,
        Self::RtoRestart,
        Self::TailCopies,
        Self::TailParity,
    ];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortTimeout => "rto-50ms",
            Self::EarlyRetransmit => "early-retransmit",
            Self::SmartFraming => "smart-framing",
            Self::AdaptiveAcks => "adaptive-acks",
            Self::AdaptiveAcksOwnFin => "adaptive-acks-own-fin",
            Self::TailProbe => "tlp",
            Self::Rack => "rack",
            Self::RtoRestart => "rto-restart",
            Self::TailCopies => "tail-copies",
            Self::TailParity => "tail-parity",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no [`Remedy`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no remedy {name:?}: write one of {}", names())]
pub struct UnknownRemedy {
    name: String,
}

fn names() -> String {
    Remedy::ALL.map(Remedy::name).join(", ")
}

impl FromStr for Remedy {
    type Err = UnknownRemedy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|remedy| remedy.name() == text)
            .ok_or_else(|| UnknownRemedy {
                name: text.to_owned(),
            })
    }
}

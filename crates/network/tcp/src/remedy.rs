//! Remedies for losses at the end of a reply, selected by name and applied to a profile.
//!
//! A remedy changes the profile of one end and nothing else, so its effect can be measured on any stack. The list has
//! the remedies of a 2007 study (shorter timeout, smart framing, early retransmit, adaptive duplicate acknowledgements)
//! and later ones.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Span;
use thiserror::Error;

use crate::Profile;
use crate::congestion::Counting;
use crate::profile::{EarlyRetransmit, FramingRule, RecoveryEngine, TailProbe};
use crate::receive::duplicates::AdaptiveAcks;
use crate::rtt::TimeoutRule;

/// A named change of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A shorter retransmission timeout: a floor or margin of 50 ms instead of 200 ms or a second.
    ShortTimeout,
    /// Early retransmit (RFC 5827). No effect with RACK.
    EarlyRetransmit,
    /// Smaller segments, so that enough segments of a reply follow a loss.
    SmartFraming,
    /// The receiver repeats its acknowledgement on a timer derived from inter-arrival times, from the FIN on.
    AdaptiveAcks,
    /// The same, with the sender's FIN in a packet of its own.
    AdaptiveAcksOwnFin,
    /// Tail loss probe (RFC 8985, section 7). Includes early retransmit if there is no RACK to use the result of the
    /// probe. Needs SACK.
    TailProbe,
    /// RACK (RFC 8985, section 6). Needs SACK.
    Rack,
    /// RTO restart (RFC 7765).
    RtoRestart,
    /// The last segments are sent twice at once.
    TailCopies,
    /// A parity segment covers the last segments, so that the receiver can restore one that is missing. Both ends need
    /// it.
    TailParity,
}

/// Shortest timeout of [`Remedy::ShortTimeout`].
const SHORT: Span = Span::from_millis(50);

impl Profile {
    /// Returns this profile with remedies. Remedies for receivers and for senders share the profile; each end uses only
    /// its part.
    pub fn with(&self, remedies: &[Remedy]) -> Self {
        let mut profile = self.clone();
        for remedy in remedies {
            remedy.apply(&mut profile);
        }
        profile
    }
}

impl Remedy {
    fn apply(self, profile: &mut Profile) {
        match self {
            Self::ShortTimeout => shorten(&mut profile.timeout),
            Self::EarlyRetransmit => {
                profile.recovery.early_retransmit = Some(EarlyRetransmit { delayed: false });
            }
            Self::SmartFraming => {
                // Four pieces while the window is below eight segments, counted in bytes.
                profile.recovery.framing = Some(FramingRule {
                    parts: 4,
                    below: 8 * u64::from(profile.offer.mss),
                });
                profile.control.counting = Counting::Bytes;
            }
            Self::AdaptiveAcks => profile.adaptive_acks = Some(AdaptiveAcks::default()),
            Self::AdaptiveAcksOwnFin => {
                profile.adaptive_acks = Some(AdaptiveAcks::default());
                profile.recovery.fin_rides = false;
            }
            Self::TailProbe => {
                mark_by_pipe(profile);
                profile.recovery.tail_probe = Some(TailProbe {
                    extra: Span::from_millis(2),
                    delayed_ack: Span::from_millis(200),
                });
                if !profile.recovery.rack {
                    profile.recovery.early_retransmit = Some(EarlyRetransmit { delayed: false });
                }
            }
            Self::Rack => {
                mark_by_pipe(profile);
                profile.recovery.rack = true;
            }
            Self::RtoRestart => profile.recovery.rto_restart = true,
            Self::TailCopies => profile.recovery.tail_copies = 2,
            Self::TailParity => profile.recovery.tail_parity = 4,
        }
    }

    /// Every remedy, in the order of tables.
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

    /// Name on command lines.
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

/// Shortens the parts of a timeout: BSD's slop, Linux's lower bound of the variance, the standard's minimum.
fn shorten(rule: &mut TimeoutRule) {
    rule.slop = rule.slop.min(SHORT);
    rule.variance_floor = rule.variance_floor.min(SHORT);
    rule.minimum = rule.minimum.min(SHORT);
}

/// Switches a BSD engine to the pipe engine with FACK, because probes and RACK mark segments. FACK follows the first
/// description of the probe (draft-dukkipati-tcpm-tcp-loss-probe-01).
fn mark_by_pipe(profile: &mut Profile) {
    if matches!(profile.recovery.engine, RecoveryEngine::Bsd { .. }) {
        profile.recovery.engine = RecoveryEngine::Pipe {
            fack: true,
            free_fin: false,
            defers: false,
        };
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: the text names no [`Remedy`].
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

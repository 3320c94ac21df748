//! Why a reply was compressed or left as it is: one closed list with stable names.
//!
//! The names are labels of metrics and what `Compression-Decision` says; they do not change. A new
//! reason is a row here.

use std::fmt;

/// Why a decision fell as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Compressed: the client asked for it.
    Asked,
    /// Compressed: the client left it open and the server can afford it.
    Affordable,
    /// Compressed: the client's line is slow enough for it to arrive earlier.
    SavesTime,
    /// Compressed: the client left it open, and the result was at hand.
    Cached,
    /// Compressed: the policy compresses whatever may be.
    PolicyAlways,
    /// Plain: the client refused.
    Refused,
    /// Plain: no coding that the client takes is on offer.
    NotAcceptable,
    /// Plain: the client takes only what its SOAP Body holds compressed, and the reply cannot be taken apart.
    NoEnvelope,
    /// Plain: the client left it open and the demand is high.
    DemandHigh,
    /// Plain: the client left it open and the demand is not known yet, or cannot be.
    DemandUnknown,
    /// Plain: the client left it open and work has piled up on this thread.
    Backlog,
    /// Plain: on the client's line compressing takes longer than it saves.
    SavesNoTime,
    /// Plain: the policy compresses nothing.
    PolicyNever,
    /// Plain: the route has opted out.
    OptedOut,
    /// Plain: a reply to HEAD.
    Head,
    /// Plain: a status without content.
    NoContent,
    /// Plain: a part of a whole (206, Content-Range).
    Range,
    /// Plain: it has a coding already.
    AlreadyCoded,
    /// Plain: Cache-Control says no-transform.
    NoTransform,
    /// Plain: a digest or a signature holds for the content as it is.
    Sealed,
    /// Plain: a media type that does not get smaller.
    MediaType,
    /// Plain: an event stream.
    Events,
    /// Plain: too short to be worth it.
    TooSmall,
}

/// Every reason, those of compressing first.
pub const REASONS: [Reason; 23] = [
    Reason::Asked,
    Reason::Affordable,
    Reason::SavesTime,
    Reason::Cached,
    Reason::PolicyAlways,
    Reason::Refused,
    Reason::NotAcceptable,
    Reason::NoEnvelope,
    Reason::DemandHigh,
    Reason::DemandUnknown,
    Reason::Backlog,
    Reason::SavesNoTime,
    Reason::PolicyNever,
    Reason::OptedOut,
    Reason::Head,
    Reason::NoContent,
    Reason::Range,
    Reason::AlreadyCoded,
    Reason::NoTransform,
    Reason::Sealed,
    Reason::MediaType,
    Reason::Events,
    Reason::TooSmall,
];

impl Reason {
    /// Its name: a token (RFC 9110, section 5.6.2) in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Affordable => "affordable",
            Self::SavesTime => "saves-time",
            Self::Cached => "cached",
            Self::PolicyAlways => "policy-always",
            Self::Refused => "refused",
            Self::NotAcceptable => "not-acceptable",
            Self::NoEnvelope => "no-envelope",
            Self::DemandHigh => "demand-high",
            Self::DemandUnknown => "demand-unknown",
            Self::Backlog => "backlog",
            Self::SavesNoTime => "saves-no-time",
            Self::PolicyNever => "policy-never",
            Self::OptedOut => "opted-out",
            Self::Head => "head",
            Self::NoContent => "no-content",
            Self::Range => "range",
            Self::AlreadyCoded => "already-coded",
            Self::NoTransform => "no-transform",
            Self::Sealed => "sealed",
            Self::MediaType => "media-type",
            Self::Events => "event-stream",
            Self::TooSmall => "too-small",
        }
    }

    /// Whether the reply was compressed.
    pub const fn compresses(self) -> bool {
        matches!(
            self,
            Self::Asked | Self::Affordable | Self::SavesTime | Self::Cached | Self::PolicyAlways
        )
    }

    /// Its place in [`REASONS`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_places_and_names_are_tokens_of_their_own() {
        for (place, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(reason.index(), place);
            assert!(crate::field::is_token(reason.name().as_bytes()));
            let same = REASONS.iter().filter(|other| other.name() == reason.name());
            assert_eq!(same.count(), 1, "{reason}");
        }
    }
}

//! Reasons of compression decisions: a closed list with stable names.
//!
//! The names are labels of metrics and values of `Compression-Decision`. They do not change. A new reason is a new row.

use std::fmt;

/// Reason of a compression decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Compressed: the client asked for it.
    Asked,
    /// Compressed: the reply is optional and CPU time is available.
    Affordable,
    /// Compressed: the client's link is slow enough for it to arrive earlier.
    SavesTime,
    /// Compressed: the reply is optional and the result was cached.
    Cached,
    /// Compressed: the policy compresses all eligible replies.
    PolicyAlways,
    /// Plain: the client refused.
    Refused,
    /// Plain: no available coding is acceptable to the client.
    NotAcceptable,
    /// Plain: the client accepts only a compressed SOAP Body, and the reply has none that can be separated.
    NoEnvelope,
    /// Plain: the reply is optional and demand is high.
    DemandHigh,
    /// Plain: the reply is optional and the demand is not known yet or cannot be measured.
    DemandUnknown,
    /// Plain: the reply is optional and this thread has a backlog.
    Backlog,
    /// Plain: compression takes longer than it saves on the client's link.
    SavesNoTime,
    /// Plain: the policy compresses nothing.
    PolicyNever,
    /// Plain: the route has opted out.
    OptedOut,
    /// Plain: a reply to HEAD.
    Head,
    /// Plain: a status without content.
    NoContent,
    /// Plain: a partial reply (206, Content-Range).
    Range,
    /// Plain: the reply has a content coding already.
    AlreadyCoded,
    /// Plain: Cache-Control contains no-transform.
    NoTransform,
    /// Plain: a digest or a signature covers the unchanged content.
    Sealed,
    /// Plain: the media type is not compressible.
    MediaType,
    /// Plain: an event stream.
    Events,
    /// Plain: too short to be worth it.
    TooSmall,
    /// Plain: the policy would compress it, but this is a dry run. No policy returns it.
    DryRun,
}

/// Every reason, those of compression first.
pub const REASONS: [Reason; 24] = [
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
    Reason::DryRun,
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
            Self::DryRun => "dry-run",
        }
    }

    /// Returns true if the reply was compressed.
    pub const fn compresses(self) -> bool {
        matches!(
            self,
            Self::Asked | Self::Affordable | Self::SavesTime | Self::Cached | Self::PolicyAlways
        )
    }

    /// Its position in [`REASONS`].
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
        for (index, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(reason.index(), index);
            assert!(posthaste_http::fields::is_token(reason.name().as_bytes()));
            let same = REASONS.iter().filter(|other| other.name() == reason.name());
            assert_eq!(same.count(), 1, "{reason}");
        }
    }
}

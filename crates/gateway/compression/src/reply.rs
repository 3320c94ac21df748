//! The relevant parts of a reply, and rules against compression that apply to every policy.
//!
//! [`Reply::obstacle`] contains all of these rules in order, each with its reason. Later header changes of a compressed
//! reply (Vary, a weak ETag, no Content-Length) belong to the gateway.

use posthaste_units::Size;

use crate::media::Media;
use crate::reason::Reason;
use posthaste_http::fields::split;

/// Relevant parts of a reply's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The reply is to HEAD, so no content follows.
    pub to_head: bool,
    /// Status code.
    pub status: u16,
    /// Content length in bytes, if stated.
    pub length: Option<Size>,
    /// Media type, from Content-Type.
    pub media: Media,
    /// The reply has a Content-Encoding other than identity ([`is_coded`]).
    pub is_coded: bool,
    /// Cache-Control contains no-transform ([`forbids_transform`]).
    pub no_transform: bool,
    /// The reply has a Content-Range.
    pub is_range: bool,
    /// The reply has a digest or a signature of the unchanged content: Content-Digest or Repr-Digest (RFC 9530),
    /// Digest, Content-MD5, Signature (RFC 9421).
    pub is_sealed: bool,
}

/// Compression rules of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Minimum length for compression, 512 B by default. A coding adds up to a hundred bytes of headers and
    /// dictionaries, and below this length both forms fit in one packet.
    pub least: Size,
    /// Permits compressed event streams. Correct only if each event is flushed. Off by default.
    pub events: bool,
    /// The route has opted out. Needed for replies that contain secrets together with text chosen by an attacker
    /// (BREACH). Off by default.
    pub opted_out: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            least: Size::from_bytes(512),
            events: false,
            opted_out: false,
        }
    }
}

impl Reply {
    /// Returns the reason why this reply must not be compressed at any preference, if there is one.
    pub fn obstacle(&self, rules: &Rules) -> Option<Reason> {
        let short = self.length.is_some_and(|length| length < rules.least);
        let obstacles = [
            (rules.opted_out, Reason::OptedOut),
            (self.to_head, Reason::Head),
            (has_no_content(self.status), Reason::NoContent),
            (self.status == 206 || self.is_range, Reason::Range),
            (self.is_coded, Reason::AlreadyCoded),
            (self.no_transform, Reason::NoTransform),
            (self.is_sealed, Reason::Sealed),
            (self.media == Media::Other, Reason::MediaType),
            (self.media == Media::Events && !rules.events, Reason::Events),
            (short, Reason::TooSmall),
        ];
        obstacles
            .into_iter()
            .find_map(|(holds, reason)| holds.then_some(reason))
    }
}

/// Returns true for informational replies, 204, 205, 304 (RFC 9110, sections 15.2 to 15.4) and values below 100.
const fn has_no_content(status: u16) -> bool {
    matches!(status, 0..=199 | 204 | 205 | 304)
}

/// Returns true if Cache-Control lines contain `no-transform` (RFC 9111, section 5.2.2.6).
pub fn forbids_transform<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut directives = lines.into_iter().flat_map(|line| split(line, b','));
    directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// Returns true if Content-Encoding lines name a coding other than `identity`, which should not be sent.
pub fn is_coded<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut codings = lines.into_iter().flat_map(|line| split(line, b','));
    codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: Reply = Reply {
        to_head: false,
        status: 200,
        length: Some(Size::from_bytes(3366)),
        media: Media::Text,
        is_coded: false,
        no_transform: false,
        is_range: false,
        is_sealed: false,
    };

    #[test]
    fn each_rule_has_its_reason() {
        let rules = Rules::default();
        let obstacle = |change: fn(&mut Reply)| {
            let mut reply = BOOK;
            change(&mut reply);
            reply.obstacle(&rules)
        };
        assert_eq!(obstacle(|_| ()), None);
        assert_eq!(obstacle(|r| r.length = None), None);
        assert_eq!(obstacle(|r| r.status = 500), None);
        assert_eq!(obstacle(|r| r.to_head = true), Some(Reason::Head));
        for status in [101, 204, 205, 304, 0] {
            let reply = Reply { status, ..BOOK };
            assert_eq!(reply.obstacle(&rules), Some(Reason::NoContent), "{status}");
        }
        assert_eq!(obstacle(|r| r.status = 206), Some(Reason::Range));
        assert_eq!(obstacle(|r| r.is_range = true), Some(Reason::Range));
        assert_eq!(obstacle(|r| r.is_coded = true), Some(Reason::AlreadyCoded));
        assert_eq!(
            obstacle(|r| r.no_transform = true),
            Some(Reason::NoTransform)
        );
        assert_eq!(obstacle(|r| r.is_sealed = true), Some(Reason::Sealed));
        assert_eq!(
            obstacle(|r| r.media = Media::Other),
            Some(Reason::MediaType)
        );
        assert_eq!(obstacle(|r| r.media = Media::Events), Some(Reason::Events));
        assert_eq!(
            obstacle(|r| r.length = Some(Size::from_bytes(511))),
            Some(Reason::TooSmall)
        );
        assert_eq!(obstacle(|r| r.length = Some(Size::from_bytes(512))), None);
    }

    #[test]
    fn a_route_sets_its_rules() {
        let closed = Rules {
            opted_out: true,
            ..Rules::default()
        };
        assert_eq!(BOOK.obstacle(&closed), Some(Reason::OptedOut));
        let flushing = Rules {
            events: true,
            ..Rules::default()
        };
        let events = Reply {
            media: Media::Events,
            length: None,
            ..BOOK
        };
        assert_eq!(events.obstacle(&flushing), None);
    }

    #[test]
    fn fields_are_lists() {
        assert!(forbids_transform([&b"public, No-Transform"[..]]));
        assert!(forbids_transform([&b"max-age=1"[..], b"no-transform"]));
        assert!(!forbids_transform([
            &b"private=\"no-transform\", x=no-transform"[..]
        ]));
        assert!(is_coded([&b"identity, gzip"[..]]) && is_coded([&b"br"[..]]));
        assert!(!is_coded([&b"identity"[..]]) && !is_coded([&b""[..]]) && !is_coded([]));
    }
}

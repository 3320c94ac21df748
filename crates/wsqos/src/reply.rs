//! What of a reply matters, and the rules that no policy can lift.
//!
//! All rules about leaving a reply alone stand in [`Reply::obstacle`], in the order in which they are
//! asked, each with its reason. How headers change once a reply is transformed (Vary, a weak ETag, no
//! Content-Length) is the gateway's: it happens after the decision.

use posthaste_units::Size;

use crate::field::split;
use crate::media::Media;
use crate::reason::Reason;

/// What the head of a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's method was HEAD, so that no content follows.
    pub to_head: bool,
    /// The status code.
    pub status: u16,
    /// Bytes of the content, where the head says so.
    pub length: Option<Size>,
    /// What the content is, by its Content-Type.
    pub media: Media,
    /// It has a Content-Encoding other than identity ([`is_coded`]).
    pub is_coded: bool,
    /// Cache-Control says no-transform ([`forbids_transform`]).
    pub no_transform: bool,
    /// It has a Content-Range.
    pub is_range: bool,
    /// It carries a digest or a signature of the content as it is: Content-Digest or Repr-Digest
    /// (RFC 9530), Digest, Content-MD5, Signature (RFC 9421).
    pub is_sealed: bool,
}

/// What a route lets happen to its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Shorter replies stay as they are. 512 B by default: a coding costs up to a hundred bytes of
    /// headers and dictionaries to begin with, and both forms fit one packet.
    pub least: Size,
    /// Whether event streams may be compressed: right only where each event is flushed. Off by default.
    pub events: bool,
    /// Whether the route has opted out, as one must that shows secrets beside what an attacker chose
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
    /// Why this reply must stay as it is, whatever the client wishes; none where it may be compressed.
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

/// Informational replies, No Content, Reset Content, Not Modified (RFC 9110, sections 15.2 to 15.4), and
/// whatever is no status of a reply.
const fn has_no_content(status: u16) -> bool {
    matches!(status, 0..=199 | 204 | 205 | 304)
}

/// Whether Cache-Control lines hold `no-transform` (RFC 9111, section 5.2.2.6).
pub fn forbids_transform<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut directives = lines.into_iter().flat_map(|line| split(line, b','));
    directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// Whether Content-Encoding lines name a coding; `identity`, which should not be sent, is none.
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
        let of = |change: fn(&mut Reply)| {
            let mut reply = BOOK;
            change(&mut reply);
            reply.obstacle(&rules)
        };
        assert_eq!(of(|_| ()), None);
        assert_eq!(of(|r| r.length = None), None);
        assert_eq!(of(|r| r.status = 500), None);
        assert_eq!(of(|r| r.to_head = true), Some(Reason::Head));
        for status in [101, 204, 205, 304, 0] {
            let reply = Reply { status, ..BOOK };
            assert_eq!(reply.obstacle(&rules), Some(Reason::NoContent), "{status}");
        }
        assert_eq!(of(|r| r.status = 206), Some(Reason::Range));
        assert_eq!(of(|r| r.is_range = true), Some(Reason::Range));
        assert_eq!(of(|r| r.is_coded = true), Some(Reason::AlreadyCoded));
        assert_eq!(of(|r| r.no_transform = true), Some(Reason::NoTransform));
        assert_eq!(of(|r| r.is_sealed = true), Some(Reason::Sealed));
        assert_eq!(of(|r| r.media = Media::Other), Some(Reason::MediaType));
        assert_eq!(of(|r| r.media = Media::Events), Some(Reason::Events));
        assert_eq!(
            of(|r| r.length = Some(Size::from_bytes(511))),
            Some(Reason::TooSmall)
        );
        assert_eq!(of(|r| r.length = Some(Size::from_bytes(512))), None);
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

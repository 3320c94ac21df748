//! `Prefer` (RFC 7240) and `Save-Data`: preferences in HTTP fields other than `Accept-Encoding`.
//!
//! - `compression=never|always|if-possible`, and `mark=af11`, by name or number
//! - `compression-reason` and `mark-reason`: request `Compression-Decision` and `Mark-Decision` in the reply
//!
//! As in RFC 7240, the first of each name counts and unknown preferences are ignored. Our unknown values are flagged.

use posthaste_units::Dscp;

use crate::wish::Wish;
use posthaste_http::fields::{pair, split};

/// The supported preferences in a request's `Prefer` lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// `compression=...`; `None` if absent or with an unknown value.
    pub compression: Option<Wish>,
    /// `compression-reason`: the client requests the reason of the compression decision.
    pub reason: bool,
    /// `mark=...`; `None` if absent or not a code point.
    pub mark: Option<Dscp>,
    /// `mark-reason`: the client requests its reply's mark and the reason.
    pub mark_reason: bool,
    /// `compression` or `mark` has an unknown value.
    pub unknown: bool,
}

impl Prefer {
    /// Reads the field's lines in order.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut prefer, mut seen, mut marked) = (Self::default(), false, false);
        for preference in lines.into_iter().flat_map(|line| split(line, b',')) {
            // Parameters of a preference follow a semicolon. Ours have none.
            let first = split(preference, b';').next().unwrap_or_default();
            let (name, value) = pair(first);
            if name.eq_ignore_ascii_case(b"compression-reason") {
                prefer.reason = true;
            } else if name.eq_ignore_ascii_case(b"compression") && !seen {
                seen = true;
                prefer.compression = Wish::from_word(value);
                prefer.unknown |= prefer.compression.is_none();
            } else if name.eq_ignore_ascii_case(b"mark-reason") {
                prefer.mark_reason = true;
            } else if name.eq_ignore_ascii_case(b"mark") && !marked {
                marked = true;
                prefer.mark = mark(value);
                prefer.unknown |= prefer.mark.is_none();
            }
        }
        prefer
    }
}

fn mark(value: &[u8]) -> Option<Dscp> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Returns true if a `Save-Data` line contains `on` (the Save-Data API, section 4: a list of tokens, `on` alone
/// defined).
pub fn saves_data<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
    lines
        .into_iter()
        .flat_map(|line| split(line, b','))
        .filter_map(|member| split(member, b';').next())
        .any(|token| token.eq_ignore_ascii_case(b"on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefer(lines: &[&str]) -> Prefer {
        Prefer::read(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn the_preference_stands_anywhere_in_the_list() {
        for line in [
            "compression=always",
            "respond-async, Compression = \"Always\"",
            "return=minimal; x=\"a,compression=never\", compression=always; foo=bar",
            "compression=always, compression=never",
        ] {
            assert_eq!(prefer(&[line]).compression, Some(Wish::Always), "{line}");
        }
        let two = prefer(&["wait=10", "compression=if-possible,compression-reason"]);
        assert_eq!(two.compression, Some(Wish::IfPossible));
        assert!(two.reason && !two.unknown);
    }

    #[test]
    fn another_value_is_no_preference_and_counted() {
        for line in [
            "compression",
            "compression=",
            "compression=maybe",
            "compression=maybe, compression=always",
        ] {
            let read = prefer(&[line]);
            assert_eq!((read.compression, read.unknown), (None, true), "{line}");
        }
        assert_eq!(
            prefer(&["compressions=always", "x;compression=always"]),
            Prefer::default()
        );
    }

    #[test]
    fn a_mark_is_a_name_or_a_number() {
        for (line, mark) in [
            ("mark=af11", Some(Dscp::AF11)),
            ("compression=always, Mark=\"EF\", mark=le", Some(Dscp::EF)),
            ("mark=0x0a", Some(Dscp::AF11)),
            ("marks=af11", None),
        ] {
            let read = prefer(&[line]);
            assert_eq!((read.mark, read.unknown), (mark, false), "{line}");
        }
        for line in ["mark", "mark=af44, mark=af11", "mark=\u{e9}"] {
            let read = prefer(&[line, "mark-reason"]);
            assert!(
                read.mark.is_none() && read.unknown && read.mark_reason,
                "{line}"
            );
        }
    }

    #[test]
    fn save_data_is_on_or_not() {
        let saves = |line: &str| saves_data([line.as_bytes()]);
        assert!(saves("on") && saves(" On ;x=1") && saves("x, on"));
        assert!(!saves("off") && !saves("") && !saves("only") && !saves_data([]));
    }
}

//! `Prefer` (RFC 7240) and `Save-Data`: what a client says over HTTP beside `Accept-Encoding`.
//!
//! Four preferences are ours: `compression=never|always|if-possible` and `mark=af11`, by its name or number,
//! and `compression-reason` and `mark-reason`, which ask for `Compression-Decision` and `Mark-Decision` in the reply. As RFC 7240 says, the first of a name counts, and what is not
//! understood is passed over; a value of ours that is not understood is counted.

use posthaste_units::Dscp;

use crate::field::{pair, split};
use crate::wish::Wish;

/// What a request's `Prefer` lines say that matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// `compression=...`; none where it is not there or has another value.
    pub compression: Option<Wish>,
    /// `compression-reason`: the client wants to know why.
    pub reason: bool,
    /// `mark=...`; none where it is not there or names no code point.
    pub mark: Option<Dscp>,
    /// `mark-reason`: the client wants to know how its reply is marked, and why.
    pub mark_reason: bool,
    /// `compression` or `mark` has a value that is none of theirs.
    pub unknown: bool,
}

impl Prefer {
    /// Reads the field's lines, in their order.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut prefer, mut seen, mut marked) = (Self::default(), false, false);
        for preference in lines.into_iter().flat_map(|line| split(line, b',')) {
            // Parameters of a preference follow a semicolon; ours have none.
            let first = split(preference, b';').next().unwrap_or_default();
            let (name, value) = pair(first);
            if name.eq_ignore_ascii_case(b"compression-reason") {
                prefer.reason = true;
            } else if name.eq_ignore_ascii_case(b"compression") && !seen {
                seen = true;
                prefer.compression = Wish::of(value);
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

/// Whether a `Save-Data` line says `on` (the Save-Data API, section 4: a list of tokens, `on` alone defined).
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

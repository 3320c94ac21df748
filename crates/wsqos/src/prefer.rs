//! `Prefer` (RFC 7240) and `Save-Data`: what a client says over HTTP beside `Accept-Encoding`.
//!
//! Two preferences are ours: `compression=never|always|if-possible`, and `compression-reason`, which asks
//! for `Compression-Decision` in the reply. As RFC 7240 says, the first of a name counts, and what is not
//! understood is passed over; a value of ours that is not understood is counted.

use crate::field::{pair, split};
use crate::wish::Wish;

/// What a request's `Prefer` lines say that matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefer {
    /// `compression=...`; none where it is not there or has another value.
    pub compression: Option<Wish>,
    /// `compression-reason`: the client wants to know why.
    pub reason: bool,
    /// `compression` has a value that is none of the three.
    pub unknown: bool,
}

impl Prefer {
    /// Reads the field's lines, in their order.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut prefer, mut seen) = (Self::default(), false);
        for preference in lines.into_iter().flat_map(|line| split(line, b',')) {
            // Parameters of a preference follow a semicolon; ours have none.
            let first = split(preference, b';').next().unwrap_or_default();
            let (name, value) = pair(first);
            if name.eq_ignore_ascii_case(b"compression-reason") {
                prefer.reason = true;
            } else if name.eq_ignore_ascii_case(b"compression") && !seen {
                seen = true;
                prefer.compression = Wish::of(value);
                prefer.unknown = prefer.compression.is_none();
            }
        }
        prefer
    }
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
    fn save_data_is_on_or_not() {
        let saves = |line: &str| saves_data([line.as_bytes()]);
        assert!(saves("on") && saves(" On ;x=1") && saves("x, on"));
        assert!(!saves("off") && !saves("") && !saves("only") && !saves_data([]));
    }
}

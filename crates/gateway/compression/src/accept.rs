//! `Accept-Encoding` (RFC 9110, section 12.5.3): the codings that a client accepts, with their weights.
//!
//! One pass over the field's lines, without allocation. A malformed member is counted, makes its coding not acceptable
//! and never widens the other members. A coding that is listed twice gets the lower of its weights.

use crate::step::{Coding, Codings};
use posthaste_http::fields::split;

/// Largest weight. Weights are whole thousandths, as the field can write them.
pub const FULL: u16 = 1000;

/// The codings that a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    present: bool,
    listed: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    any: Option<u16>,
    /// The client accepts a coding that is not one of ours.
    others: bool,
    malformed: u16,
}

impl Accept {
    /// Reads the field's lines in order. No lines mean that the request has no such field.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut accept = Self::default();
        for line in lines {
            accept.present = true;
            for member in split(line, b',') {
                accept.take(member);
            }
        }
        accept
    }

    fn take(&mut self, member: &[u8]) {
        if member.is_empty() {
            return; // RFC 9110, section 5.6.1: empty members are ignored.
        }
        let mut parts = split(member, b';');
        let name = parts.next().unwrap_or_default();
        let weight = match (parts.next(), parts.next()) {
            (None, _) => Some(FULL),
            (Some(weight), None) => read_weight(weight),
            _ => None,
        };
        let (Some(weight), true) = (weight, posthaste_http::fields::is_token(name)) else {
            self.malformed = self.malformed.saturating_add(1);
            // The intended weight is unknown. A malformed member never widens acceptance.
            if let Some(coding) = Coding::from_token(name) {
                self.listed[coding as usize] = Some(0);
            }
            return;
        };
        let slot = match Coding::from_token(name) {
            Some(coding) => &mut self.listed[coding as usize],
            None if name == b"*" => &mut self.any,
            None if name.eq_ignore_ascii_case(b"identity") => &mut self.identity,
            None => {
                self.others |= weight > 0;
                return;
            }
        };
        *slot = Some(slot.map_or(weight, |earlier| earlier.min(weight)));
    }

    /// Returns true if the request had the field.
    pub const fn is_present(&self) -> bool {
        self.present
    }

    /// Weight of `coding`: 0 (not acceptable) to 1000.
    ///
    /// Returns 0 without the field. RFC 9110 would allow any coding then, but most clients without the field cannot
    /// decode any.
    pub fn quality(&self, coding: Coding) -> u16 {
        let listed = self.listed[coding as usize];
        listed.or(self.any).unwrap_or(0)
    }

    /// Weight of the unchanged reply: 1000 unless the field says otherwise.
    pub fn identity(&self) -> u16 {
        match (self.identity, self.any) {
            (Some(weight), _) => weight,
            (None, Some(0)) => 0,
            _ => FULL,
        }
    }

    /// Returns true if the client wants no coding: the field is present and accepts none (`identity`, an empty field,
    /// `gzip;q=0`), or ranks `identity` above each coding that it names.
    ///
    /// A field with a malformed member and no accepted coding refuses nothing.
    pub fn refuses(&self) -> bool {
        let best = self.best_weight();
        let plain_first = best > 0 && !self.others && self.identity.is_some_and(|q| q > best);
        let welcomes_none = best == 0 && !self.others && self.malformed == 0;
        self.present && (plain_first || welcomes_none)
    }

    /// Returns true if the client accepts only coded replies: `identity;q=0`, or `*;q=0` without `identity`, together
    /// with an accepted coding.
    pub fn demands(&self) -> bool {
        self.present && self.identity() == 0 && self.best_weight() > 0
    }

    /// Codings of `offered` with the highest weight. Empty if the client accepts none of them.
    pub fn best(&self, offered: Codings) -> Codings {
        let mut best = (0, Codings::default());
        for coding in Coding::ALL.into_iter().filter(|c| offered.has(*c)) {
            let quality = self.quality(coding);
            if quality > best.0 {
                best = (quality, Codings::default());
            }
            if quality > 0 && quality == best.0 {
                best.1 = best.1.with(coding);
            }
        }
        best.1
    }

    /// Number of malformed members.
    pub const fn malformed(&self) -> u16 {
        self.malformed
    }

    fn best_weight(&self) -> u16 {
        let qualities = Coding::ALL.map(|coding| self.quality(coding));
        qualities.into_iter().max().unwrap_or(0)
    }
}

/// Reads `q=` and a weight (RFC 9110, section 12.4.2): 0 or 1 with at most three decimals.
fn read_weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = parameter else {
        return None;
    };
    let decimals = match rest {
        [] => rest,
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    let mut thousandths = 0;
    for digit_index in 0..3 {
        let digit = *decimals.get(digit_index).unwrap_or(&b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths = thousandths * 10 + u16::from(digit - b'0');
    }
    let weight = u16::from(whole - b'0') * FULL + thousandths;
    (weight <= FULL).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(lines: &[&str]) -> Accept {
        Accept::read(lines.iter().map(|line| line.as_bytes()))
    }

    fn qualities(lines: &[&str]) -> [u16; 3] {
        let accept = accept(lines);
        [Coding::Gzip, Coding::Zstd, Coding::Brotli].map(|coding| accept.quality(coding))
    }

    #[test]
    fn weights_are_read_as_the_grammar_has_them() {
        assert_eq!(qualities(&["gzip"]), [1000, 0, 0]);
        assert_eq!(qualities(&["GZip;Q=0.5 , br ; q=1.000"]), [500, 0, 1000]);
        assert_eq!(qualities(&["x-gzip;q=0.123,zstd;q=0."]), [123, 0, 0]);
        assert_eq!(qualities(&["*"]), [1000; 3]);
        assert_eq!(qualities(&["gzip;q=0, *;q=0.1"]), [0, 100, 100]);
        assert_eq!(
            qualities(&["gzip;q=0.2", "br", "", ",,zstd"]),
            [200, 1000, 1000]
        );
        assert_eq!(qualities(&["gzip;q=0.9, gzip;q=0.3"]), [300, 0, 0]);
        assert_eq!(qualities(&[]), [0; 3]);
    }

    #[test]
    fn malformed_codings_are_not_acceptable() {
        for wrong in [
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=-1",
            "gzip;q=.5",
            "gzip;q=nan",
            "gzip;q=1 ;x=1",
            "gzip;level=1",
            "gzip;",
            "gzip q=1",
            "gz\"ip",
            "gzip;q=0.2x",
            "gzip, gzip;q=2",
        ] {
            let accept = accept(&[wrong]);
            assert_eq!(accept.quality(Coding::Gzip), 0, "{wrong}");
            assert_eq!(accept.malformed(), 1, "{wrong}");
            assert!(!accept.refuses() && !accept.demands(), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_is_told_from_a_coding_we_lack() {
        for refusal in [
            "",
            "identity",
            "gzip;q=0",
            "*;q=0",
            "identity;q=1, *;q=0",
            "identity, gzip;q=0.5",
        ] {
            assert!(accept(&[refusal]).refuses(), "{refusal:?}");
        }
        for other in [
            "gzip",
            "compress",
            "deflate;q=0.1",
            "identity;q=0.5, gzip",
            "identity, gzip",
            "*",
        ] {
            assert!(!accept(&[other]).refuses(), "{other:?}");
        }
        assert!(!accept(&[]).refuses());
    }

    #[test]
    fn a_demand_excludes_the_plain_reply() {
        for demand in ["gzip, identity;q=0", "br, *;q=0", "*, identity;q=0"] {
            assert!(accept(&[demand]).demands(), "{demand}");
        }
        for other in [
            "*;q=0",
            "identity;q=0",
            "gzip",
            "gzip, *;q=0, identity;q=0.1",
        ] {
            assert!(!accept(&[other]).demands(), "{other}");
        }
    }

    #[test]
    fn the_best_are_those_the_client_ranks_highest() {
        let best = |line| accept(&[line]).best(Codings::ALL);
        let gzip = Codings::default().with(Coding::Gzip);
        assert_eq!(best("deflate, gzip;q=1.0, *;q=0.5"), gzip);
        assert_eq!(best("gzip, br, zstd"), Codings::ALL);
        assert!(best("identity").is_empty());
        let only_gzip = accept(&["br, gzip;q=0.1"]).best(gzip);
        assert_eq!(only_gzip, gzip, "among what is on offer");
    }
}

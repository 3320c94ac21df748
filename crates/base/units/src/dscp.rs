//! Code points of differentiated services: the requested treatment of a packet.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::parse;

/// The six bits of a differentiated services code point (RFC 2474): the upper six of IPv4's TOS byte and of IPv6's
/// traffic class. Not the byte itself: AF11 is 0x0a, and 0x28 as a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

/// One table for the constants, parsing and printing.
macro_rules! code_points {
    ($($constant:ident $name:literal $value:literal $about:literal)*) => {
        impl Dscp {
            $(#[doc = $about] pub const $constant: Self = Self($value);)*
        }
        const NAMES: &[(&str, Dscp)] = &[$(($name, Dscp::$constant)),*];
    };
}

code_points! {
    DEFAULT "default" 0 "Best effort, CS0 (RFC 2474)."
    LE "le" 1 "Less than best effort (RFC 8622)."
    CS1 "cs1" 8 "Class selector 1 (RFC 2474); until RFC 8622 what LE is now."
    AF11 "af11" 10 "Assured forwarding (RFC 2597), class 1, dropped last."
    AF12 "af12" 12 "Assured forwarding, class 1."
    AF13 "af13" 14 "Assured forwarding, class 1, dropped first."
    CS2 "cs2" 16 "Class selector 2."
    AF21 "af21" 18 "Assured forwarding, class 2, dropped last."
    AF22 "af22" 20 "Assured forwarding, class 2."
    AF23 "af23" 22 "Assured forwarding, class 2, dropped first."
    CS3 "cs3" 24 "Class selector 3."
    AF31 "af31" 26 "Assured forwarding, class 3, dropped last."
    AF32 "af32" 28 "Assured forwarding, class 3."
    AF33 "af33" 30 "Assured forwarding, class 3, dropped first."
    CS4 "cs4" 32 "Class selector 4."
    AF41 "af41" 34 "Assured forwarding, class 4, dropped last."
    AF42 "af42" 36 "Assured forwarding, class 4."
    AF43 "af43" 38 "Assured forwarding, class 4, dropped first."
    CS5 "cs5" 40 "Class selector 5."
    VA "va" 44 "Voice that was admitted (RFC 5865)."
    EF "ef" 46 "Expedited forwarding (RFC 3246)."
    CS6 "cs6" 48 "Class selector 6: the network's own control."
    CS7 "cs7" 56 "Class selector 7."
}

impl Dscp {
    /// The code point with this number; `None` above 0x3f.
    pub const fn new(value: u8) -> Option<Self> {
        if value > 0x3f {
            return None;
        }
        Some(Self(value))
    }

    /// The number, 0 to 0x3f.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Code point of a TOS byte or a traffic class. The two ECN bits are ignored.
    pub const fn of_traffic_class(byte: u8) -> Self {
        Self(byte >> 2)
    }

    /// TOS byte or traffic class with this code point, for `IP_TOS` and `IPV6_TCLASS`. The ECN bits are zero.
    pub const fn traffic_class(self) -> u8 {
        self.0 << 2
    }
}

/// Text that is not a code point.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is not a DiffServ code point: write af11 to af43, cs0 to cs7, ef, va, le, default or a number up to 0x3f"
)]
pub struct UnknownDscp {
    text: String,
}

impl FromStr for Dscp {
    type Err = UnknownDscp;

    /// Parses a name in any case, or a number, decimal or after `0x`.
    fn from_str(text: &str) -> Result<Self, UnknownDscp> {
        let lower = text.trim().to_ascii_lowercase();
        let unknown = || UnknownDscp {
            text: text.to_owned(),
        };
        if lower == "cs0" {
            return Ok(Self::DEFAULT);
        }
        if let Some((_, dscp)) = NAMES.iter().find(|(name, _)| *name == lower) {
            return Ok(*dscp);
        }
        let (digits, radix) = match lower.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (lower.as_str(), 10),
        };
        // `from_str_radix` would accept a sign.
        if digits.starts_with('+') {
            return Err(unknown());
        }
        let value = u8::from_str_radix(digits, radix).map_err(|_| unknown())?;
        Self::new(value).ok_or_else(unknown)
    }
}

impl fmt::Display for Dscp {
    /// Writes the name in lower case, or the number such as `0x2d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, dscp)| dscp == self) {
            Some((name, _)) => f.pad(name),
            None => f.pad(&format!("{:#04x}", self.0)),
        }
    }
}

parse::serde_as_text!(Dscp, "a DiffServ code point in quotation marks");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_have_the_numbers_of_their_documents() {
        for (class, drop) in (1..=4).flat_map(|class| (1..=3).map(move |drop| (class, drop))) {
            // RFC 2597, section 6: 8 per class and 2 per drop precedence.
            let af: Dscp = format!("AF{class}{drop}").parse().unwrap();
            assert_eq!(af.get(), 8 * class + 2 * drop);
        }
        for selector in 0..8 {
            let cs: Dscp = format!("cs{selector}").parse().unwrap();
            assert_eq!(cs.get(), 8 * selector);
        }
        let number = |text: &str| text.parse().map(Dscp::get);
        assert_eq!(number("default"), Ok(0));
        assert_eq!(number("LE"), Ok(1));
        assert_eq!(number("va"), Ok(0b10_1100));
        assert_eq!(number("ef"), Ok(0b10_1110));
    }

    #[test]
    fn a_number_does_as_well() {
        assert_eq!("0x0a".parse(), Ok(Dscp::AF11));
        assert_eq!("10".parse(), Ok(Dscp::AF11));
        for wrong in [
            "",
            "0x40",
            "64",
            "af44",
            "af",
            "0x",
            "-1",
            "+1",
            "0x+1",
            "af11,af12",
        ] {
            let error = wrong.parse::<Dscp>().unwrap_err().to_string();
            assert!(error.contains("0x3f"), "{error}");
        }
    }

    #[test]
    fn every_code_point_prints_what_it_reads() {
        for dscp in (0..=0x3f).map(|value| Dscp::new(value).unwrap()) {
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            for ecn in 0..4 {
                assert_eq!(Dscp::of_traffic_class(dscp.traffic_class() | ecn), dscp);
            }
        }
        assert_eq!(Dscp::new(0x40), None);
        assert_eq!(Dscp::AF11.traffic_class(), 0x28);
        assert_eq!(
            format!("{} {}", Dscp::AF11, Dscp::of_traffic_class(4 * 45)),
            "af11 0x2d"
        );
        assert_eq!(
            serde_json::to_string(&Dscp::DEFAULT).unwrap(),
            "\"default\""
        );
    }
}

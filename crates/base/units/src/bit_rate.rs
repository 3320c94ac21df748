//! Bit rates in whole bits per second, so that link times are exact.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::parse::{self, ParseError};

const EXAMPLE: &str = "300kbit, 1.5Mbit, 1Gbit, 300kbit/s or 1024kbyte/s";
const RANGE: &str =
    "from 1bit to 1000000Gbit (no bandwidth at all is not a rate: drop the packets instead)";
/// Upper bound up to which a number of bits stays exact when it is read as a float and multiplied by its unit: two
/// roundings of 2^-53 of it are less than half a bit.
const LARGEST: u64 = 1_000_000_000_000_000;

const BITS: &[(&str, f64)] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("mbit", 1e6),
    ("Gbit", 1e9),
    ("gbit", 1e9),
    ("byte/s", 8.0),
    ("kbyte/s", 8e3),
    ("Mbyte/s", 8e6),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
];

/// Bits per second: a whole number, at least one. k, M and G are powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(NonZeroU64);

impl BitRate {
    /// `bits` per second; `None` for zero.
    pub const fn per_second(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }
    /// Bits per second, never zero.
    pub const fn as_bits(self) -> u64 {
        self.0.get()
    }
    /// Bytes per second with fraction.
    pub fn as_bytes_f64(self) -> f64 {
        self.as_bits() as f64 / 8.0
    }
}

impl FromStr for BitRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = parse::split(text, EXAMPLE)?;
        let unit = match unit.strip_suffix("/s") {
            Some(bare) if bare.ends_with("bit") => bare,
            _ => unit,
        };
        let bits = (value * parse::factor(text, unit, BITS, EXAMPLE)?).round();
        if bits > LARGEST as f64 {
            return Err(out_of_range(text));
        }
        Self::per_second(bits as u64).ok_or_else(|| out_of_range(text))
    }
}

fn out_of_range(text: &str) -> ParseError {
    ParseError::Range {
        text: text.to_owned(),
        range: RANGE,
    }
}

impl fmt::Display for BitRate {
    /// Writes the largest unit that is exact with three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.as_bits();
        let (unit, factor) = match bits {
            0..1_000 => ("bit", 1),
            large if large >= 1_000_000_000 && large % 1_000_000 == 0 => ("Gbit", 1_000_000_000),
            large if large >= 1_000_000 && large % 1_000 == 0 => ("Mbit", 1_000_000),
            _ => ("kbit", 1_000),
        };
        let (whole, rest) = (bits / factor, bits % factor * 1_000 / factor);
        let decimals = format!("{rest:03}");
        match decimals.trim_end_matches('0') {
            "" => f.pad(&format!("{whole}{unit}")),
            decimals => f.pad(&format!("{whole}.{decimals}{unit}")),
        }
    }
}

parse::serde_as_text!(BitRate);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(text: &str) -> u64 {
        text.parse::<BitRate>().unwrap().as_bits()
    }

    #[test]
    fn reads_what_people_write() {
        assert_eq!(bits("300kbit"), 300_000);
        assert_eq!(bits("300 kbit/s"), 300_000);
        assert_eq!(bits("40.2kbit"), 40_200);
        assert_eq!(bits("1.5Mbit"), 1_500_000);
        assert_eq!(bits("1gbit"), 1_000_000_000);
        assert_eq!(bits("1024kbyte/s"), 8_192_000);
        assert_eq!(bits("1MB/s"), 8_000_000);
        assert_eq!(bits("56_000bit"), 56_000);
    }

    #[test]
    fn refuses_with_the_remedy() {
        let refused = |text: &str| text.parse::<BitRate>().unwrap_err().to_string();
        assert!(refused("300").contains("no unit"));
        // In tc the unit means bytes, elsewhere bits.
        assert!(refused("300kbps").contains("300kbit"));
        assert!(refused("0kbit").contains("drop the packets"));
        assert!(refused("99999999Gbit").contains("from 1bit"));
        for wrong in ["", "kbit", "-1kbit", "1kbyte", "1kB", "NaNbit"] {
            assert!(wrong.parse::<BitRate>().is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in [
            "1bit",
            "999bit",
            "300kbit",
            "1.5Mbit",
            "40.2kbit",
            "1Gbit",
            "2.488Gbit",
        ] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
        assert_eq!(
            BitRate::per_second(8_192_000).unwrap().to_string(),
            "8.192Mbit"
        );
    }

    proptest! {
        #[test]
        fn the_text_is_exact(bits in 1..=LARGEST, digits in 0u32..15) {
            let rate = BitRate::per_second((bits / 10u64.pow(digits)).max(1)).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}

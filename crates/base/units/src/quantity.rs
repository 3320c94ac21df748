//! Rates, sizes and shares.

use std::fmt;
use std::str::FromStr;

use crate::Span;
use crate::parse::{self, ParseError};

/// Events per second; finite and not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

/// A share of a whole, 0 to 1. Also written as a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Rate {
    /// Accepted spellings.
    pub(crate) const EXAMPLE: &str = "500/s, 1.5k/s, 2M/s, 30/min or 10/h";
    /// Units and their factors.
    pub(crate) const UNITS: &[(&str, f64)] = &[
        ("/s", 1.0),
        ("k/s", 1e3),
        ("M/s", 1e6),
        ("/min", 1.0 / 60.0),
        ("/h", 1.0 / 3600.0),
    ];

    /// `events` per second; `None` if negative or not finite.
    pub fn per_second(events: f64) -> Option<Self> {
        (events.is_finite() && events >= 0.0).then_some(Self(events))
    }
    /// Events per second.
    pub const fn as_per_second(self) -> f64 {
        self.0
    }
    /// Time between two events at this rate; [`Span::MAX`] at rate zero.
    pub fn interval(self) -> Span {
        Span::from_secs_f64(1.0 / self.0)
    }
}

impl Size {
    /// Accepted spellings.
    pub(crate) const EXAMPLE: &str = "512B, 64kB, 1.5MB, 2GB, 64KiB or 1MiB";
    /// Units and their factors.
    pub(crate) const UNITS: &[(&str, f64)] = &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ];

    /// `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// Bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl Ratio {
    /// Accepted spellings in documents.
    pub(crate) const EXAMPLE: &str = "2%, 0.5% or a number from 0 to 1";
    /// Units and their factors.
    pub(crate) const UNITS: &[(&str, f64)] = &[("%", 0.01), ("", 1.0)];

    /// A share; `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// Reads a share in a document, such as a configuration or a header field: a percentage, or a number from 0 to 1.
    /// Command lines use [`FromStr`], which refuses the number.
    pub fn from_document(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = parse::split(text, Self::EXAMPLE)?;
        let share = value * parse::factor(text, unit, Self::UNITS, Self::EXAMPLE)?;
        Self::new(share).ok_or_else(|| ParseError::Range {
            text: text.to_owned(),
            range: "from 0 to 100%",
        })
    }

    /// The share, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = parse::split(text, Self::EXAMPLE)?;
        let rate = value * parse::factor(text, unit, Self::UNITS, Self::EXAMPLE)?;
        Self::per_second(rate).ok_or_else(|| ParseError::Range {
            text: text.to_owned(),
            range: "a finite number of events per second",
        })
    }
}

impl FromStr for Size {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = parse::split(text, Self::EXAMPLE)?;
        let bytes = value * parse::factor(text, unit, Self::UNITS, Self::EXAMPLE)?;
        if bytes >= u64::MAX as f64 {
            return Err(ParseError::Range {
                text: text.to_owned(),
                range: "at most 18 EB",
            });
        }
        Ok(Self(bytes.round() as u64))
    }
}

impl FromStr for Ratio {
    type Err = ParseError;

    /// Reads a percentage. A number without `%` is refused unless it is 0: 0.5 could mean 0.5 % or 50 %.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const PERCENT: &str = "2% or 0.5%";
        let (value, unit) = parse::split(text, PERCENT)?;
        match Self::new(value) {
            _ if unit == "%" => Self::from_document(text),
            Some(share) if unit.is_empty() && value > 0.0 => Err(ParseError::Bare {
                text: text.trim().to_owned(),
                meant: share.to_string(),
            }),
            Some(zero) if unit.is_empty() => Ok(zero),
            _ => Err(ParseError::Unit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                example: PERCENT,
            }),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate >= 1e6 => f.pad(&format!("{}M/s", parse::short(rate / 1e6))),
            rate if rate >= 1e4 => f.pad(&format!("{}k/s", parse::short(rate / 1e3))),
            rate => f.pad(&format!("{}/s", parse::short(rate))),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..10_000 => f.pad(&format!("{}B", self.0)),
            10_000..1_000_000 => f.pad(&format!("{}kB", parse::short(bytes / 1e3))),
            1_000_000..1_000_000_000 => f.pad(&format!("{}MB", parse::short(bytes / 1e6))),
            _ => f.pad(&format!("{}GB", parse::short(bytes / 1e9))),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", parse::short(self.0 * 100.0)))
    }
}

parse::serde_as_text!(Rate);
parse::serde_as_text!(Size);
parse::serde_as_text!(
    Ratio,
    "a number and its unit in quotation marks",
    Ratio::from_document
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("500/s".parse(), Ok(Rate(500.0)));
        assert_eq!("1.5k/s".parse(), Ok(Rate(1500.0)));
        assert_eq!("30/min".parse(), Ok(Rate(0.5)));
        assert_eq!("1.5MB".parse(), Ok(Size(1_500_000)));
        assert_eq!("64KiB".parse(), Ok(Size(65_536)));
        assert_eq!("2%".parse(), Ok(Ratio(0.02)));
        assert_eq!("0".parse(), Ok(Ratio(0.0)));
        assert_eq!(Ratio::from_document("0.25"), Ok(Ratio(0.25)));
        assert_eq!(Ratio::from_document("25%"), Ok(Ratio(0.25)));
    }

    #[test]
    fn a_share_without_a_percent_sign_is_refused_with_both_meanings() {
        for (text, remedy) in [
            ("0.5", "write 0.5%, or 50% if that is meant"),
            ("1", "write 1%, or 100% if that is meant"),
            ("2", "has no unit: write 2% or 0.5%"),
            ("2ms", "has the unknown unit \"ms\": write 2% or 0.5%"),
        ] {
            let error = text.parse::<Ratio>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }

    #[test]
    fn documents_may_have_the_number() {
        let read = |text: &str| serde_json::from_str::<Ratio>(text).unwrap();
        assert_eq!((read("\"0.5\""), read("\"50%\"")), (Ratio(0.5), Ratio(0.5)));
    }

    #[test]
    fn refuses_with_the_remedy() {
        let bare = "500".parse::<Rate>().unwrap_err().to_string();
        assert!(bare.contains("500/s"), "{bare}");
        assert!("5ms".parse::<Rate>().is_err());
        assert!("10".parse::<Size>().is_err());
        let much = "120%".parse::<Ratio>().unwrap_err().to_string();
        assert!(much.contains("100%"), "{much}");
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["500/s", "25k/s", "1.5M/s", "0.5/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["512B", "64kB", "1.5MB", "2GB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!("2.5%".parse::<Ratio>().unwrap().to_string(), "2.5%");
    }

    #[test]
    fn small_is_not_nothing() {
        let hourly: Rate = "10/h".parse().unwrap();
        assert_eq!(hourly.to_string(), "0.002778/s");
        assert_eq!("0.0001%".parse::<Ratio>().unwrap().to_string(), "0.0001%");
        assert_eq!(Ratio(0.0).to_string(), "0%");
        assert_eq!(
            Rate(f64::MIN_POSITIVE)
                .to_string()
                .parse::<Rate>()
                .map(|r| r.0 > 0.0),
            Ok(true)
        );
    }

    #[test]
    fn travels_as_text() {
        let json = serde_json::to_string(&Rate(500.0)).unwrap();
        assert_eq!(json, "\"500/s\"");
        assert_eq!(serde_json::from_str::<Rate>(&json).unwrap(), Rate(500.0));
        let bare = serde_json::from_str::<Rate>("500").unwrap_err().to_string();
        assert!(
            bare.contains("a number and its unit in quotation marks"),
            "{bare}"
        );
    }

    #[test]
    fn an_interval_is_the_inverse() {
        assert_eq!(Rate(1000.0).interval(), Span::from_millis(1));
        assert_eq!(Rate(0.0).interval(), Span::MAX);
    }
}

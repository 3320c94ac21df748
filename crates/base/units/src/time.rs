//! Points in time and lengths of time, in whole nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;
use std::time::Duration;

use crate::parse::{self, ParseError};

const RANGE: &str = "at most 584 years";

/// A length of time in nanoseconds, never negative: 0 to about 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A point in time: nanoseconds since the origin of the run's clock.
///
/// Instants of different clocks must not be compared. This is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Span {
    /// Accepted spellings.
    pub(crate) const EXAMPLE: &str = "10ms, 1.5s, 250us, 800ns, 2min or 1h";
    /// Units and their factors.
    pub(crate) const UNITS: &[(&str, f64)] = &[
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];

    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A span of `s` whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// A span of `s` seconds; negative and NaN become zero, too large becomes [`Span::MAX`].
    pub fn from_secs_f64(s: f64) -> Self {
        // Rounds half up like `f64::round`, which is a function call on baseline processors.
        let ns = s * 1e9;
        let whole = ns as u64;
        Self(whole.saturating_add(u64::from(ns - whole as f64 >= 0.5)))
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Microseconds with fraction.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Milliseconds with fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds with fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// This span minus `other`, at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Returns true for a span of zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Instant {
    /// The clock's origin.
    pub const ORIGIN: Self = Self(0);
    /// Later than every other instant: "never".
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The point `ns` nanoseconds after the clock's origin.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Time from `earlier` to here, where `earlier` is not later. A broken order is a bug: a debug build panics, and a
    /// release build returns zero.
    #[inline]
    pub fn since(self, earlier: Self) -> Span {
        debug_assert!(
            self >= earlier,
            "the order of two instants is broken: {} ns is before {} ns",
            self.0,
            earlier.0
        );
        self.saturating_since(earlier)
    }
    /// Time from `earlier` to here, zero if `earlier` is later. For times of different clocks or threads, and for
    /// deadlines that may have passed.
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = parse::split(text, Self::EXAMPLE)?;
        if unit.is_empty() && value == 0.0 {
            return Ok(Self::ZERO);
        }
        let ns = value * parse::factor(text, unit, Self::UNITS, Self::EXAMPLE)?;
        if ns >= u64::MAX as f64 {
            return Err(ParseError::Range {
                text: text.to_owned(),
                range: RANGE,
            });
        }
        Ok(Self(ns.round() as u64))
    }
}

impl fmt::Display for Span {
    /// Writes the largest unit with a value of at least one, with at most three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (unit, factor) = match self.0 {
            0 => return f.pad("0s"),
            1..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("us", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        f.pad(&format!("{}{unit}", parse::short(ns / factor)))
    }
}

parse::serde_as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("10ms".parse(), Ok(Span::from_millis(10)));
        assert_eq!(" 1.5 s ".parse(), Ok(Span::from_millis(1500)));
        assert_eq!("2min".parse(), Ok(Span::from_secs(120)));
        assert_eq!("0".parse(), Ok(Span::ZERO));
    }

    #[test]
    fn refuses_with_the_remedy() {
        let unit = "10".parse::<Span>().unwrap_err().to_string();
        assert!(unit.contains("no unit") && unit.contains("10ms"), "{unit}");
        let unknown = "3kbit".parse::<Span>().unwrap_err().to_string();
        assert!(unknown.contains("kbit"), "{unknown}");
        for wrong in ["", "ms", "-5ms", "NaN", "1e3s", "1..2s", "999999999999h"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn prints_what_it_reads_to_four_digits(ns in 0u64..1_000_000_000_000_000) {
            let back: Span = Span(ns).to_string().parse().unwrap();
            let error = back.0.abs_diff(ns) as f64;
            prop_assert!(error <= ns as f64 * 5e-4);
        }

        #[test]
        fn seconds_are_rounded_as_floats_are(s: f64, ns in 0u64..1 << 54, half in -0.5f64..1.0) {
            for s in [s, (ns as f64 + half) / 1e9] {
                prop_assert_eq!(Span::from_secs_f64(s).0, (s * 1e9).round() as u64);
            }
        }

        #[test]
        fn arithmetic_never_wraps(a: u64, b: u64) {
            let (early, late) = (Instant(a.min(b)), Instant(a.max(b)));
            prop_assert_eq!(early.saturating_since(late), Span::ZERO);
            prop_assert_eq!(early + late.since(early), late);
            prop_assert_eq!(late.since(early), late.saturating_since(early));
            prop_assert!(Span(a) + Span(b) >= Span(a.max(b)));
        }
    }
}

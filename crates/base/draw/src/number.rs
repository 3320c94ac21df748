//! Formatting of numbers for people: `10k`, `2.5 ms`, `3,912 B`.
//!
//! Each unit has two formats: short, consistent labels for an axis, and the exact value for a tooltip. `axis` chooses
//! the ticks.

/// Unit of a number, which decides its format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    #[default]
    Count,
    /// Seconds, printed as ns, µs, ms or s.
    Seconds,
    /// Milliseconds, printed as ns, µs, ms or s.
    Millis,
    /// Bytes, printed as B, kB, MB or GB (decimal).
    Bytes,
    /// Events per second.
    PerSecond,
    /// Bits per second, printed as bit/s, kbit/s, Mbit/s or Gbit/s.
    Bits,
    /// A share of a whole, 0 to 1, printed in per cent.
    Share,
}

/// A prefix: its factor and its suffix.
type Prefix = (f64, &'static str);

const COUNTS: &[Prefix] = &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const TIMES: &[Prefix] = &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")];
const SIZES: &[Prefix] = &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")];
const RATES: &[Prefix] = &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")];
const BITS: &[Prefix] = &[
    (1e9, " Gbit/s"),
    (1e6, " Mbit/s"),
    (1e3, " kbit/s"),
    (1.0, " bit/s"),
];
const SHARES: &[Prefix] = &[(0.01, " %")];

/// Counts below this have no prefix: 9,500 rather than 9.5k.
const WRITTEN_OUT: f64 = 10_000.0;

impl Unit {
    /// Formats one value to four significant digits; whole counts, bytes and rates below 100,000 in full.
    pub fn exact(self, value: f64) -> String {
        let base = value * self.base();
        let whole = matches!(self, Self::Count | Self::Bytes | Self::PerSecond);
        if whole && base.fract() == 0.0 && base.abs() < 1e5 {
            let (factor, suffix) = self.smallest();
            return format!("{}{suffix}", digits(base / factor, 0));
        }
        let (factor, suffix) = self.prefix(base, 1.0);
        format!("{}{suffix}", significant(base / factor))
    }

    /// Labels of the ticks of a linear axis, with the same prefix and number of decimals.
    pub(crate) fn linear_labels(self, ticks: &[f64]) -> Vec<String> {
        let largest = ticks.iter().fold(0.0f64, |max, tick| max.max(tick.abs()));
        let (factor, suffix) = self.prefix(largest * self.base(), WRITTEN_OUT);
        let scaled: Vec<f64> = ticks.iter().map(|t| t * self.base() / factor).collect();
        let decimals = decimals_that_tell_apart(&scaled);
        scaled
            .iter()
            .map(|tick| format!("{}{suffix}", digits(*tick, decimals)))
            .collect()
    }

    /// Label of one tick of a logarithmic axis: its own prefix, no trailing zeros.
    pub(crate) fn log_label(self, tick: f64) -> String {
        let base = tick * self.base();
        let (factor, suffix) = self.prefix(base, WRITTEN_OUT);
        format!("{}{suffix}", significant(base / factor))
    }

    /// Factor from this unit to the unit of its prefixes.
    fn base(self) -> f64 {
        if self == Self::Millis { 1e-3 } else { 1.0 }
    }

    fn prefixes(self) -> &'static [Prefix] {
        match self {
            Self::Count => COUNTS,
            Self::Seconds | Self::Millis => TIMES,
            Self::Bytes => SIZES,
            Self::PerSecond => RATES,
            Self::Bits => BITS,
            Self::Share => SHARES,
        }
    }

    fn smallest(self) -> Prefix {
        self.prefixes()[self.prefixes().len() - 1]
    }

    /// Largest prefix for which the value is at least one. Plain counts and rates have none below `written_out`.
    fn prefix(self, base: f64, written_out: f64) -> Prefix {
        let plain = matches!(self, Self::Count | Self::PerSecond);
        if base == 0.0 {
            return match self {
                Self::Seconds | Self::Millis => (1.0, " s"),
                _ => self.smallest(),
            };
        }
        if plain && base.abs() < written_out {
            return self.smallest();
        }
        // Tolerance for rounding errors: 0.9999999 s is 1 s.
        let fits = |prefix: &&Prefix| base.abs() >= prefix.0 * (1.0 - 1e-9);
        *self
            .prefixes()
            .iter()
            .find(fits)
            .unwrap_or(&self.smallest())
    }
}

/// Minimum number of decimals that distinguish `values`, at most six.
fn decimals_that_tell_apart(values: &[f64]) -> usize {
    let step = values
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .fold(f64::INFINITY, f64::min);
    let exact = |decimals: &usize| {
        let power = 10f64.powi(*decimals as i32);
        values
            .iter()
            .all(|v| ((v * power).round() / power - v).abs() <= step * 1e-3)
    };
    (0..6).find(exact).unwrap_or(6)
}

/// Formats `value` to four significant digits without trailing zeros.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..15.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let text = digits(value, (3.0 - magnitude).clamp(0.0, 9.0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats `value` with `decimals` decimals, thousands separators and a true minus sign.
pub(crate) fn digits(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.3e}");
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain
        .split_once('.')
        .map_or((&*plain, None), |(w, f)| (w, Some(f)));
    let mut text = String::new();
    if value < 0.0 && plain.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_single_values() {
        assert_eq!(Unit::Seconds.exact(0.002_5), "2.5 ms");
        assert_eq!(Unit::Millis.exact(0.25), "250 µs");
        assert_eq!(Unit::Millis.exact(1234.5), "1.234 s");
        assert_eq!(Unit::Bytes.exact(3912.0), "3,912 B");
        assert_eq!(Unit::PerSecond.exact(145.0), "145/s");
        assert_eq!(Unit::Bits.exact(160_000.0), "160 kbit/s");
        assert_eq!(Unit::Share.exact(0.125), "12.5 %");
        assert_eq!(Unit::Count.exact(-0.5), "−0.5");
        assert_eq!(Unit::Count.exact(1.25e7), "12.5M");
        assert_eq!(Unit::Seconds.exact(0.0), "0 s");
    }

    #[test]
    fn labels_of_one_axis_agree() {
        assert_eq!(
            Unit::Seconds.linear_labels(&[0.0, 0.25, 0.5]),
            ["0 ms", "250 ms", "500 ms"]
        );
        assert_eq!(
            Unit::Count.linear_labels(&[0.0, 0.5, 1.0]),
            ["0.0", "0.5", "1.0"]
        );
        assert_eq!(
            Unit::PerSecond.linear_labels(&[0.0, 10_000.0, 20_000.0]),
            ["0k/s", "10k/s", "20k/s"]
        );
        assert_eq!(Unit::Count.linear_labels(&[2500.0]), ["2,500"]);
        assert_eq!(Unit::Count.linear_labels(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_logarithmic_label_has_its_own_prefix() {
        assert_eq!(Unit::Millis.log_label(0.1), "100 µs");
        assert_eq!(Unit::Millis.log_label(2000.0), "2 s");
        assert_eq!(Unit::Count.log_label(100_000.0), "100k");
    }

    #[test]
    fn extremes_do_not_panic() {
        for unit in [
            Unit::Count,
            Unit::Seconds,
            Unit::Millis,
            Unit::Bytes,
            Unit::PerSecond,
            Unit::Bits,
            Unit::Share,
        ] {
            for value in [
                f64::MAX,
                f64::MIN,
                f64::MIN_POSITIVE,
                f64::NAN,
                f64::INFINITY,
            ] {
                unit.exact(value);
                unit.log_label(value);
                unit.linear_labels(&[value, 0.0]);
            }
        }
    }
}

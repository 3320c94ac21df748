//! Numbers with units, read and written without rounding: the written form reads back as the same value.

use posthaste_units::{BitRate, Span};

/// Units of time in nanoseconds, the largest last.
const TIME: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Units of bandwidth in bit/s.
const BANDWIDTH: &[(&str, u64)] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("Mbit", 1_000_000),
    ("Gbit", 1_000_000_000),
    ("byte/s", 8),
    ("kbyte/s", 8_000),
    ("Mbyte/s", 8_000_000),
];
/// Percent in billionths.
const PERCENT: &[(&str, u64)] = &[("%", 10_000_000)];
/// Number of units in both tables that are written. The others are only read.
const WRITTEN: usize = 4;

/// Probability of a loss, in billionths, so that its text is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossShare(u32);

impl LossShare {
    /// A share of at most all packets, 1,000,000,000 billionths.
    pub const fn from_billionths(billionths: u32) -> Option<Self> {
        if billionths > 1_000_000_000 {
            return None;
        }
        Some(Self(billionths))
    }

    /// The share, 0 to 1.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}

/// Error in a number, in words that follow the number.
pub(super) type Wrong = String;

/// The number and the unit of "1.5Mbit".
pub(super) fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A whole number without unit.
pub(super) fn whole(text: &str) -> Result<u64, Wrong> {
    scaled(text, &[("", 1)], "a whole number")
}

/// A length of time.
pub(super) fn span(text: &str) -> Result<Span, Wrong> {
    scaled(text, TIME, "a time such as 40ms, 250us or 1.5s").map(Span::from_nanos)
}

/// A bandwidth.
pub(super) fn bandwidth(text: &str) -> Result<BitRate, Wrong> {
    let bits = text
        .strip_suffix("/s")
        .filter(|rest| rest.ends_with("bit"))
        .unwrap_or(text);
    let bits = scaled(bits, BANDWIDTH, "a bandwidth such as 160kbit or 1.5Mbit")?;
    BitRate::per_second(bits).ok_or_else(|| "is no bandwidth: drop the packets instead".to_owned())
}

/// A share in percent.
pub(super) fn loss_share(text: &str) -> Result<LossShare, Wrong> {
    let wanted = "a share such as 2% or 0.05%";
    let billionths = scaled(text, PERCENT, wanted)?;
    let share = u32::try_from(billionths)
        .ok()
        .and_then(LossShare::from_billionths);
    share.ok_or_else(|| "is more than all packets: write at most 100%".to_owned())
}

/// Writes a share in percent, as short as possible without rounding.
pub(super) fn write_loss_share(share: LossShare) -> String {
    let (whole, part) = (share.0 / PERCENT[0].1 as u32, share.0 % PERCENT[0].1 as u32);
    let decimals = format!(".{part:07}");
    let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
    format!("{whole}{decimals}%")
}

/// Writes a length of time, as short as possible without rounding.
pub(super) fn write_span(span: Span) -> String {
    written(span.as_nanos(), &TIME[..WRITTEN])
}

/// Writes a bandwidth, as short as possible without rounding.
pub(super) fn write_bandwidth(rate: BitRate) -> String {
    written(rate.as_bits(), &BANDWIDTH[..WRITTEN])
}

/// Value of `text` in the smallest of `units`. `wanted` describes the expected form for errors.
fn scaled(text: &str, units: &[(&str, u64)], wanted: &str) -> Result<u64, Wrong> {
    let (number, unit) = split(text);
    let known = |(name, factor): &(&str, u64)| {
        (*name == unit || (unit == "µs" && *name == "us")).then_some(*factor)
    };
    let Some(factor) = units.iter().find_map(known) else {
        return Err(if unit.is_empty() {
            format!("has no unit: write {wanted}")
        } else {
            format!("is not {wanted}")
        });
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let cut_off = whole.is_empty() || (fraction.is_empty() && number.contains('.'));
    if cut_off || !digits(whole) || !digits(fraction) {
        return Err(format!("is not {wanted}"));
    }
    let too_large = || "is too large".to_owned();
    let mut value = whole
        .parse::<u64>()
        .ok()
        .and_then(|whole| whole.checked_mul(factor))
        .ok_or_else(too_large)?;
    let mut weight = factor;
    for digit in fraction.trim_end_matches('0').bytes() {
        if !weight.is_multiple_of(10) {
            return Err(format!(
                "has more decimals than can be kept: write {wanted}"
            ));
        }
        weight /= 10;
        value = value
            .checked_add(u64::from(digit - b'0') * weight)
            .ok_or_else(too_large)?;
    }
    Ok(value)
}

/// `value` in the largest unit that leaves a whole number.
fn written(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, factor): &&(&str, u64)| value.is_multiple_of(*factor);
    match units.iter().rev().find(fits) {
        Some((unit, factor)) if value > 0 => format!("{}{unit}", value / factor),
        _ => format!("{value}{}", units[0].0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(span("1.5s"), Ok(Span::from_millis(1500)));
        assert_eq!(span("0.000000001s"), Ok(Span::from_nanos(1)));
        assert!(span("0.0000000001s").is_err() && span("1.s").is_err() && span(".5s").is_err());
        assert!(span("99999999999h").unwrap_err().contains("too large"));
        assert_eq!(
            bandwidth("1.5Mbit/s"),
            Ok(BitRate::per_second(1_500_000).unwrap())
        );
        assert!(bandwidth("10ms").unwrap_err().contains("160kbit"));
        assert!(span("40").unwrap_err().contains("no unit"));
        assert_eq!(loss_share("2.5%"), Ok(LossShare(25_000_000)));
        assert!(loss_share("100.1%").unwrap_err().contains("at most 100%"));
        assert!(
            loss_share("0.00000001%")
                .unwrap_err()
                .contains("more decimals")
        );
    }

    proptest! {
        #[test]
        fn values_are_read_back_as_written(value in 1u64..) {
            prop_assert_eq!(span(&write_span(Span::from_nanos(value))), Ok(Span::from_nanos(value)));
            let rate = BitRate::per_second(value).unwrap();
            prop_assert_eq!(bandwidth(&write_bandwidth(rate)), Ok(rate));
            let share = LossShare::from_billionths((value % 1_000_000_001) as u32).unwrap();
            prop_assert_eq!(loss_share(&write_loss_share(share)), Ok(share));
        }
    }
}

//! Values in the text of a service: spans, rates, shares and factors that are printed exactly as they were read.
//!
//! The quantities of `posthaste-units` print at most four digits, which suits people. A spec must survive a round trip.

use posthaste_units::{Rate, Span};

/// The highest rate in a spec, in requests per second: the limiter counts whole nanoseconds between two requests.
const MAX_RATE: f64 = 1e6;
/// The largest factor of a service time.
const MAX_FACTOR: f64 = 1000.0;

/// A share of requests in steps of 0.0001 %, above 0 and at most 100 %. Always written with `%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// A share of `millionths` in a million; `None` outside 1 to 1,000,000.
    pub fn from_millionths(millionths: u32) -> Option<Self> {
        (1..=1_000_000)
            .contains(&millionths)
            .then_some(Self(millionths))
    }

    /// The share, above 0 and at most 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// Reads a share such as `2%`. A bare number is refused, since 0.5 could mean 0.5 % or 50 %.
pub(crate) fn read_percent(text: &str) -> Result<Percent, String> {
    let Some(number) = text.strip_suffix('%') else {
        let remedy = match text.parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) => {
                format!(": write {}% or {value}%", short(value * 100.0))
            }
            _ => ": write 2%".to_owned(),
        };
        return Err(format!("the share {text:?} has no percent sign{remedy}"));
    };
    let wrong = || format!("{text:?} is no share from 0.0001% to 100%");
    let value = read_number(number).ok_or_else(wrong)?;
    Percent::from_millionths((value * 1e4).round() as u32).ok_or_else(wrong)
}

/// Prints a share as it is read.
pub(crate) fn write_percent(share: Percent) -> String {
    format!("{}%", short(f64::from(share.0) / 1e4))
}

/// Reads a factor such as `5x`: above 1 and at most 1000.
pub(crate) fn read_factor(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('x').and_then(read_number);
    value
        .filter(|factor| *factor > 1.0 && *factor <= MAX_FACTOR)
        .ok_or_else(|| format!("{text:?} is no factor above 1x and at most {MAX_FACTOR}x"))
}

/// Reads a time above zero.
pub(crate) fn read_span(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(time) if time.is_zero() => Err("the time is zero".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Prints a time exactly, in the largest unit that needs no more than three decimals.
pub(crate) fn write_span(time: Span) -> String {
    let text = time.to_string();
    if text.parse() == Ok(time) {
        return text;
    }
    let ns = time.as_nanos();
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// Reads a rate above zero and at most 1M/s.
pub(crate) fn read_rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    if rate.as_per_second() > 0.0 && rate.as_per_second() <= MAX_RATE {
        Ok(rate)
    } else {
        Err(format!("{text:?} is no rate above 0/s and at most 1M/s"))
    }
}

/// Prints a rate exactly.
pub(crate) fn write_rate(rate: Rate) -> String {
    let text = rate.to_string();
    if text.parse() == Ok(rate) {
        return text;
    }
    format!("{}/s", rate.as_per_second())
}

/// Reads a whole number in a range.
pub(crate) fn read_count(
    text: &str,
    name: &str,
    range: std::ops::RangeInclusive<u32>,
) -> Result<u32, String> {
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("{name} is from {} to {}", range.start(), range.end()))
}

/// Splits a value into exactly `N` parts.
pub(crate) fn split<const N: usize>(
    text: &str,
    separator: char,
    form: &str,
) -> Result<[String; N], String> {
    let parts: Vec<String> = text.split(separator).map(str::to_owned).collect();
    parts
        .try_into()
        .map_err(|_| format!("its form is {form}, with {} of {separator:?}", N - 1))
}

/// Reads digits with at most one point. Signs and exponents are refused.
pub(crate) fn read_number(text: &str) -> Option<f64> {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Prints at most four decimals without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

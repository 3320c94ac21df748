//! Lists and ranges of values, and all combinations of them.
//!
//! Values are text, so that every option of a link can be swept. A list is `160kbit,300kbit`, a range `5ms..200ms` (its
//! ends and 1, 2, 5, 10 ... between them) or `10ms..50ms:5` (equal distances).

use posthaste_units::{BitRate, ParseError, Ratio, Span};
use thiserror::Error;

/// Maximum number of combinations. More are a mistake.
const MOST_COMBINATIONS: usize = 100_000;
/// Maximum number of steps in a range.
const MOST_STEPS: usize = 1000;

/// Error in a list or range, or in their combination.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SweepError {
    /// A list with an empty item.
    #[error("a value is missing in the list")]
    MissingValue,
    /// A range with an invalid number of steps.
    #[error("{item:?}: write A..B:N with N from 2 to {}", MOST_STEPS)]
    StepCount {
        /// The range.
        item: String,
    },
    /// A range whose ends have different units.
    #[error(
        "{item:?}: write a range with both ends alike: 5ms..200ms, 160kbit..10Mbit, 0%..5%:6 or 1..12"
    )]
    EndsDiffer {
        /// The range.
        item: String,
    },
    /// A range of shares without `%`.
    #[error("{item:?}: {reason}")]
    Share {
        /// The range.
        item: String,
        /// The parser's error.
        #[source]
        reason: ParseError,
    },
    /// A range that does not ascend.
    #[error("{item:?}: the first end is not below the second")]
    NotAscending {
        /// The range.
        item: String,
    },
    /// A range with too many values.
    #[error("{item:?} makes {steps} values: at most {} are possible", MOST_STEPS)]
    TooManySteps {
        /// The range.
        item: String,
        /// Number of values.
        steps: usize,
    },
    /// A range from zero without a number of steps.
    #[error("{item:?}: a range from zero needs a number of values, as in A..B:6")]
    FromZero {
        /// The range.
        item: String,
    },
    /// More than `MOST_COMBINATIONS` combinations.
    #[error(
        "{count} combinations: at most {} are possible; leave values out",
        MOST_COMBINATIONS
    )]
    TooManyCombinations {
        /// Number of combinations.
        count: usize,
    },
}

/// An option with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptOption {
    /// Name, without dashes.
    pub name: String,
    /// Values, at least one. None for an option without a value.
    pub values: Option<Vec<String>>,
}

/// One value of each option.
#[derive(Clone, Debug, Default)]
pub struct Combination<'a>(Vec<(&'a SweptOption, Option<&'a str>)>);

impl Combination<'_> {
    /// The options as on a command line.
    pub fn texts(&self) -> Vec<String> {
        let word = |(option, value): &(&SweptOption, Option<&str>)| match value {
            Some(value) => format!("--{}={value}", option.name),
            None => format!("--{}", option.name),
        };
        self.0.iter().map(word).collect()
    }

    /// Names and values of the options with several values.
    pub fn labels(&self) -> Vec<(String, String)> {
        let labels = self.0.iter().filter_map(|(option, value)| {
            let swept = option
                .values
                .as_ref()
                .is_some_and(|values| values.len() > 1);
            let value = value.filter(|_| swept)?;
            Some((option.name.clone(), value.to_owned()))
        });
        labels.collect()
    }
}

/// Returns every combination. The last option varies fastest.
pub fn combinations(options: &[SweptOption]) -> Result<Vec<Combination<'_>>, SweepError> {
    let counts = options.iter();
    let counts = counts.map(|option| option.values.as_ref().map_or(1, Vec::len));
    check_count(counts.fold(1usize, usize::saturating_mul))?;
    let mut chosen = vec![Combination::default()];
    for option in options {
        let values: Vec<Option<&str>> = match &option.values {
            Some(values) => values.iter().map(|value| Some(value.as_str())).collect(),
            None => vec![None],
        };
        let mut longer = Vec::with_capacity(chosen.len() * values.len());
        for before in &chosen {
            for value in &values {
                let mut choices = before.clone();
                choices.0.push((option, *value));
                longer.push(choices);
            }
        }
        chosen = longer;
    }
    Ok(chosen)
}

/// Refuses more than `MOST_COMBINATIONS`.
pub(crate) const fn check_count(count: usize) -> Result<(), SweepError> {
    if count > MOST_COMBINATIONS {
        Err(SweepError::TooManyCombinations { count })
    } else {
        Ok(())
    }
}

/// Returns the values of a list, with expanded ranges.
pub fn expand(text: &str) -> Result<Vec<String>, SweepError> {
    let mut values = Vec::new();
    for item in text.split(',').map(str::trim) {
        match item.split_once("..") {
            Some((from, rest)) => values.extend(range(item, from, rest)?),
            None if item.is_empty() => return Err(SweepError::MissingValue),
            None => values.push(item.to_owned()),
        }
    }
    Ok(values)
}

/// `A..B`, or `A..B:N` for N values.
fn range(item: &str, from: &str, rest: &str) -> Result<Vec<String>, SweepError> {
    let owned = || item.to_owned();
    let (to, steps) = match rest.split_once(':') {
        Some((to, steps)) => {
            let steps = steps.parse().ok();
            let steps = steps.filter(|steps| (2..=MOST_STEPS).contains(steps));
            let wrong = || SweepError::StepCount { item: owned() };
            (to, Some(steps.ok_or_else(wrong)?))
        }
        None => (rest, None),
    };
    let places = |from: f64, to: f64| spaced(item, from, to, steps);
    if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
        let steps = steps.or(Some(to.saturating_sub(from) as usize + 1));
        let values = spaced(item, f64::from(from), f64::from(to), steps)?;
        Ok(values.iter().map(|value| format!("{value:.0}")).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<Span>(), to.parse::<Span>()) {
        let values = places(from.as_secs_f64(), to.as_secs_f64())?;
        let spans = values.into_iter().map(Span::from_secs_f64);
        Ok(spans.map(|span| span.to_string()).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<BitRate>(), to.parse::<BitRate>()) {
        let values = places(from.as_bits() as f64, to.as_bits() as f64)?;
        let rates = values.into_iter();
        let rates = rates.filter_map(|bits| BitRate::per_second(bits.round() as u64));
        Ok(rates.map(|rate| rate.to_string()).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<Ratio>(), to.parse::<Ratio>()) {
        let values = places(from.get(), to.get())?;
        let shares = values.into_iter().filter_map(Ratio::new);
        Ok(shares.map(|share| share.to_string()).collect())
    } else {
        Err(ends_differ(item, [from, to]))
    }
}

/// The error of a range whose ends are not alike, or are shares without `%`.
fn ends_differ(item: &str, ends: [&str; 2]) -> SweepError {
    let item = item.to_owned();
    let shares = ends.map(str::parse::<Ratio>);
    let are_shares = ends.iter().all(|end| Ratio::from_document(end).is_ok());
    match shares.into_iter().find_map(Result::err) {
        Some(reason @ ParseError::Bare { .. }) if are_shares => SweepError::Share { item, reason },
        _ => SweepError::EndsDiffer { item },
    }
}

/// `steps` values at equal distances, or the ends and the values 1, 2, 5, 10, 20, 50... between them.
fn spaced(item: &str, from: f64, to: f64, steps: Option<usize>) -> Result<Vec<f64>, SweepError> {
    let item = || item.to_owned();
    if from >= to {
        return Err(SweepError::NotAscending { item: item() });
    }
    match steps {
        Some(steps) if steps > MOST_STEPS => Err(SweepError::TooManySteps {
            item: item(),
            steps,
        }),
        Some(steps) => {
            let gap = (to - from) / (steps - 1) as f64;
            Ok((0..steps).map(|n| from + gap * n as f64).collect())
        }
        None if from == 0.0 => Err(SweepError::FromZero { item: item() }),
        None => {
            let first = from.log10().floor() as i32;
            let decades = first..=to.log10().ceil() as i32;
            let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(decade)));
            // A mark that equals an end except for rounding is that end.
            let within = marks.filter(|mark| *mark > from * 1.000_001 && *mark < to * 0.999_999);
            Ok([from].into_iter().chain(within).chain([to]).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_spelt_out() {
        let cases = [
            ("300kbit", "300kbit"),
            ("160kbit,300kbit", "160kbit 300kbit"),
            ("5ms..200ms", "5ms 10ms 20ms 50ms 100ms 200ms"),
            (
                "160kbit..10Mbit",
                "160kbit 200kbit 500kbit 1Mbit 2Mbit 5Mbit 10Mbit",
            ),
            ("0%..5%:6", "0% 1% 2% 3% 4% 5%"),
            ("0,8..11", "0 8 9 10 11"),
            ("10ms..20ms:3", "10ms 15ms 20ms"),
        ];
        for (text, values) in cases {
            assert_eq!(expand(text).unwrap().join(" "), values, "{text}");
        }
    }

    #[test]
    fn ranges_are_refused_with_the_remedy() {
        let cases = [
            ("5ms..10kbit", "both ends alike"),
            ("200ms..5ms", "not below"),
            ("0ms..5ms", "A..B:6"),
            ("1ms..5ms:1", "from 2 to 1000"),
            ("0..5000", "at most 1000"),
            ("5ms,", "missing"),
            ("0.01..0.05", "write 0.01%, or 1% if that is meant"),
            ("0..0.05:6", "write 0.05%, or 5% if that is meant"),
            ("0.01..5ms", "both ends alike"),
        ];
        for (text, remedy) in cases {
            let error = expand(text).unwrap_err().to_string();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}

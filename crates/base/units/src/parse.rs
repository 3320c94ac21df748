//! Parser for "10ms", "500/s", "2%": one number, one unit, nothing else.

use thiserror::Error;

/// Reason why a quantity could not be parsed. The message contains valid spellings.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// No number at the start.
    #[error("{text:?} does not start with a number: write {example}")]
    NoNumber {
        /// The input.
        text: String,
        /// One accepted spelling.
        example: &'static str,
    },
    /// A number below zero.
    #[error("{text:?} is negative: write {example}")]
    Negative {
        /// The input.
        text: String,
        /// One accepted spelling.
        example: &'static str,
    },
    /// A number with a missing or unknown unit.
    #[error("{text:?} has {}: write {example}", unit_problem(unit))]
    Unit {
        /// The input.
        text: String,
        /// The unit in the input, empty if there is none.
        unit: String,
        /// Accepted spellings.
        example: &'static str,
    },
    /// A share above zero without `%`. It could mean two things.
    #[error("{text:?} has no percent sign: write {text}%, or {meant} if that is meant")]
    Bare {
        /// The input.
        text: String,
        /// The same share in percent.
        meant: String,
    },
    /// A number outside the range of the quantity.
    #[error("{text:?} is out of range: {range}")]
    Range {
        /// The input.
        text: String,
        /// The limits in words.
        range: &'static str,
    },
}

fn unit_problem(unit: &str) -> String {
    if unit.is_empty() {
        "no unit".to_owned()
    } else {
        format!("the unknown unit {unit:?}")
    }
}

/// Splits "1.5ms" into 1.5 and "ms". Spaces around and between are allowed.
pub(crate) fn split<'a>(
    text: &'a str,
    example: &'static str,
) -> Result<(f64, &'a str), ParseError> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let number = trimmed[..end].replace('_', "");
    match number.parse::<f64>() {
        Ok(value) => Ok((value, trimmed[end..].trim_start())),
        Err(_) if trimmed.starts_with('-') => Err(ParseError::Negative {
            text: text.to_owned(),
            example,
        }),
        Err(_) => Err(ParseError::NoNumber {
            text: text.to_owned(),
            example,
        }),
    }
}

/// Looks `unit` up in a table of spellings and factors.
pub(crate) fn factor(
    text: &str,
    unit: &str,
    table: &[(&str, f64)],
    example: &'static str,
) -> Result<f64, ParseError> {
    table
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| ParseError::Unit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            example,
        })
}

/// Prints at most three decimals without trailing zeros. Values below 0.1 get four significant digits, so that a small
/// value is not printed as zero.
pub(crate) fn short(value: f64) -> String {
    let decimals = match value {
        small if small > 0.0 && small < 0.1 => 3 - small.log10().floor() as i32,
        _ => 3,
    };
    let decimals = usize::try_from(decimals).unwrap_or(3);
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Implements `Serialize` as the text of `Display`, and `Deserialize` by `FromStr` or a function.
macro_rules! serde_as_text {
    ($type:ty) => {
        parse::serde_as_text!($type, "a number and its unit in quotation marks");
    };
    ($type:ty, $expected:literal) => {
        parse::serde_as_text!($type, $expected, str::parse::<$type>);
    };
    ($type:ty, $expected:literal, $read:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        $read(text).map_err(E::custom)
                    }
                }
                from.deserialize_str(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;

//! Prices: exact amounts in a currency, and what currencies are worth.
//!
//! Amounts are whole millionths, so that 0.10 added ten times is 1 and nothing is ever NaN or negative.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Millionths in one.
const MICROS: u64 = 1_000_000;
/// Digits behind the point.
const DIGITS: usize = 6;

/// A currency's code of three capital letters (ISO 4217).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

/// An amount of money, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    #[serde(rename = "amount", with = "decimal")]
    micros: u64,
    currency: Currency,
}

/// What each currency is worth in one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    base: Currency,
    worth: BTreeMap<Currency, f64>,
}

/// Why something is no price.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// No code of a currency.
    #[error("{0:?} is no currency: want three capital letters, as EUR")]
    Currency(String),
    /// No amount.
    #[error(
        "{0:?} is no amount: want a decimal number of at most {DIGITS} digits behind the point, not negative, below 10^12"
    )]
    Amount(String),
    /// A worth that nothing can be computed with.
    #[error("1 {0} must be worth more than 0 and less than 10^9")]
    Worth(Currency),
}

/// Largest amount, in whole units.
const MOST: u64 = 1_000_000_000_000;

impl Money {
    /// So many millionths of a currency's unit; `None` from 10^12 units on.
    pub fn from_micros(micros: u64, currency: Currency) -> Option<Self> {
        (micros < MOST * MICROS).then_some(Self { micros, currency })
    }

    /// `amount`, as "0.40", in `currency`.
    pub fn new(amount: &str, currency: Currency) -> Result<Self, MoneyError> {
        let micros = micros(amount).ok_or_else(|| MoneyError::Amount(amount.to_owned()))?;
        Ok(Self { micros, currency })
    }

    /// Millionths.
    pub const fn micros(self) -> u64 {
        self.micros
    }

    /// The currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// The amount as it is written in a document.
    pub fn amount(self) -> String {
        decimal_text(self.micros)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "currency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Code of a currency, three capital letters (ISO 4217): EUR.",
            "pattern": "^[A-Z]{3}$",
        })
    }
}

impl Currency {
    /// Its three letters.
    pub fn code(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Rates {
    /// Only `base` is known.
    pub fn new(base: Currency) -> Self {
        let worth = BTreeMap::from([(base, 1.0)]);
        Self { base, worth }
    }

    /// 1 `currency` is worth so much of the base; that of the base itself stays 1.
    pub fn set(&mut self, currency: Currency, worth: f64) -> Result<(), MoneyError> {
        if !(worth > 0.0 && worth < 1e9) {
            return Err(MoneyError::Worth(currency));
        }
        if currency != self.base {
            self.worth.insert(currency, worth);
        }
        Ok(())
    }

    /// The currency in which the others are counted.
    pub const fn base(&self) -> Currency {
        self.base
    }

    /// An amount in millionths of the base; `None` for a currency that nobody has told the worth of.
    ///
    /// What costs more in one currency never costs less here, and equal amounts stay equal.
    pub fn in_base(&self, money: Money) -> Option<u64> {
        if money.currency == self.base {
            return Some(money.micros);
        }
        let worth = self.worth.get(&money.currency)?;
        // Below 10^27: a cast would saturate at 1.8 * 10^19, which is more than any amount.
        Some((money.micros as f64 * worth).round() as u64)
    }
}

pub(crate) fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || text.ends_with('.') {
        return None;
    }
    let (kept, rest) = part.split_at(part.len().min(DIGITS));
    if rest.bytes().any(|b| b != b'0') {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole < MOST)?;
    let part: u64 = format!("{kept:0<DIGITS$}").parse().ok()?;
    Some(whole * MICROS + part)
}

pub(crate) fn decimal_text(micros: u64) -> String {
    let part = format!("{:0DIGITS$}", micros % MICROS);
    // Two digits at least, as people write prices.
    let kept = part.trim_end_matches('0').len().max(2);
    format!("{}.{}", micros / MICROS, &part[..kept])
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        match *text.as_bytes() {
            [a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(MoneyError::Currency(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Currency {
    type Error = MoneyError;

    fn try_from(text: String) -> Result<Self, MoneyError> {
        text.parse()
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.to_string()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{}", *b as char))
    }
}

/// An amount and a currency, with or without a space between: "0.40 EUR".
impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let split = text.find(|c: char| c.is_ascii_alphabetic());
        let (amount, currency) = text.split_at(split.unwrap_or(text.len()));
        Self::new(amount.trim_end(), currency.parse()?)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.amount(), self.currency))
    }
}

/// JSON has the amount as a text, "0.40": a number there is a binary one in most programs.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(micros: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::decimal_text(*micros))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let wrong = || serde::de::Error::custom(super::MoneyError::Amount(text.to_string()));
        super::micros(&text).ok_or_else(wrong)
    }
}

//! Prices: exact amounts in a currency, and exchange rates.
//!
//! Amounts are whole millionths, so 0.10 added ten times is 1. No amount is NaN or negative.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Millionths in a unit.
const MICROS: u64 = 1_000_000;
/// Maximum number of decimals.
const DIGITS: usize = 6;

/// Currency code of three capital letters (ISO 4217).
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

/// Exchange rates to a base currency.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    base: Currency,
    worth: BTreeMap<Currency, f64>,
}

/// Reason why a price or rate is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// Not a currency code.
    #[error("{0:?} is not a currency: write three capital letters, such as EUR")]
    Currency(String),
    /// Not an amount.
    #[error(
        "{0:?} is not an amount: write a decimal number with at most {DIGITS} decimals, from 0 to less than 10^12"
    )]
    Amount(String),
    /// Exchange rate out of range.
    #[error("1 {0} must be worth more than 0 and less than 10^9")]
    Worth(Currency),
}

/// Upper bound of amounts, exclusive, in whole units.
const MOST: u64 = 1_000_000_000_000;

impl Money {
    /// Creates an amount of `micros` millionths. Returns `None` from 10^12 units on.
    pub fn from_micros(micros: u64, currency: Currency) -> Option<Self> {
        (micros < MOST * MICROS).then_some(Self { micros, currency })
    }

    /// Parses `amount`, such as "0.40", in `currency`.
    pub fn new(amount: &str, currency: Currency) -> Result<Self, MoneyError> {
        let micros = micros(amount).ok_or_else(|| MoneyError::Amount(amount.to_owned()))?;
        Ok(Self { micros, currency })
    }

    /// The amount in millionths.
    pub const fn micros(self) -> u64 {
        self.micros
    }

    /// The currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// The amount as written in a document.
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
    /// Creates rates with `base` as the only known currency.
    pub fn new(base: Currency) -> Self {
        let worth = BTreeMap::from([(base, 1.0)]);
        Self { base, worth }
    }

    /// Sets the worth of 1 `currency` in the base currency. That of the base itself stays 1.
    pub fn set(&mut self, currency: Currency, worth: f64) -> Result<(), MoneyError> {
        if !(worth > 0.0 && worth < 1e9) {
            return Err(MoneyError::Worth(currency));
        }
        if currency != self.base {
            self.worth.insert(currency, worth);
        }
        Ok(())
    }

    /// The base currency.
    pub const fn base(&self) -> Currency {
        self.base
    }

    /// Converts an amount to millionths of the base currency. Returns `None` if the rate is unknown.
    ///
    /// The conversion keeps the order of amounts in one currency, and equal amounts stay equal.
    pub fn in_base(&self, money: Money) -> Option<u64> {
        if money.currency == self.base {
            return Some(money.micros);
        }
        let worth = self.worth.get(&money.currency)?;
        // Below 10^27: the cast would saturate at 1.8 * 10^19, which exceeds any amount.
        Some((money.micros as f64 * worth).round() as u64)
    }
}

/// Reads a decimal number as millionths; `None` if it has more than six decimals, a sign, or is no number.
pub fn micros(text: &str) -> Option<u64> {
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

/// Writes millionths as a decimal number.
pub fn decimal_text(micros: u64) -> String {
    let part = format!("{:0DIGITS$}", micros % MICROS);
    // At least two decimals, as usual for prices.
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

/// Parses an amount and a currency, with or without a space between them: "0.40 EUR".
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

/// Amounts in JSON are strings, "0.40", because most programs read JSON numbers as binary ones.
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

//! An amount in the market's currency, as written in configurations: "0.10".

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use posthaste_qos::{Currency, Money, MoneyError};

/// An amount without its currency, in whole millionths, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

/// Maximum amount: below 10^12 whole units, as in [`Money`].
const MOST: u64 = 1_000_000_000_000_000_000 - 1;

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of `micros` millionths. Saturates below 10^12 whole units.
    pub const fn from_micros(micros: u64) -> Self {
        Self(if micros > MOST { MOST } else { micros })
    }

    /// The amount in millionths.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The amount as money of a currency.
    pub fn to_money(self, currency: Currency) -> Money {
        Money::from_micros(self.0, currency).expect("an amount is within what money can be")
    }
}

impl FromStr for Amount {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        posthaste_qos::micros(text)
            .map(Self)
            .ok_or_else(|| MoneyError::Amount(text.to_owned()))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&posthaste_qos::decimal_text(self.0))
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Amount of money in the currency of the prices: 0.10. At most six decimals.",
            "pattern": r"^[0-9]+(\.[0-9]+)?$",
        })
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

//! Accounts with budgets at a broker: what requests and replies contain, and the calls.
//!
//! An account is identified by the SHA-256 digest of its API key, by the subject of its certificate, or by both. The
//! broker keeps no key. Gateways report charges in numbered batches, so that a repeated batch is booked once.

mod calls;
mod hex;
mod key;
mod name;

use jiff::Timestamp;
use posthaste_qos::Money;
use posthaste_units::Span;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::calls::ChargeQuery;
pub use self::hex::{Hex, HexError};
pub use self::key::{AccountKey, KeyError};
pub use self::name::{LONGEST_NAME, LONGEST_SUBJECT, fault_of_account_name, fault_of_subject};

/// SHA-256 digest of an API key.
pub type KeyDigest = Hex<32>;

/// Identity of one life of a gateway: random, made at each start.
pub type GatewayId = Hex<16>;

/// Maximum number of charges in a report.
pub const MOST_CHARGES: usize = 1_000;

/// A new account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// Name, see [`fault_of_account_name`].
    pub name: String,
    /// Digest of its API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_sha256: Option<KeyDigest>,
    /// Subject of its certificate (RFC 4514).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Money for one period.
    pub budget: Money,
    /// Length of a period. Periods are counted from 1970-01-01T00:00:00Z.
    pub period: Span,
    /// Accepted price of requests that state none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_price: Option<Money>,
}

/// A change of an account. An absent field stays as it is; `null` removes the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccountChange {
    /// Digest of another API key.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub key_sha256: Option<Option<KeyDigest>>,
    /// Subject of another certificate.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub certificate: Option<Option<String>>,
    /// Another budget, in the same currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Money>,
    /// Another length of a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// Another accepted price of requests that state none.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub max_price: Option<Option<Money>>,
}

/// An account and its current state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountState {
    /// Name.
    pub name: String,
    /// Digest of its API key.
    #[serde(default)]
    pub key_sha256: Option<KeyDigest>,
    /// Subject of its certificate.
    #[serde(default)]
    pub certificate: Option<String>,
    /// Money for one period.
    pub budget: Money,
    /// Length of a period.
    pub period: Span,
    /// Accepted price of requests that state none.
    #[serde(default)]
    pub max_price: Option<Money>,
    /// Booked charges of the current period. Can exceed the budget by the bound of overdraft.
    pub spent: Money,
    /// Milliseconds until the current period ends.
    pub period_ends_in_ms: u64,
    /// Time of creation.
    pub made: Timestamp,
    /// Time of its end, if it is closed.
    #[serde(default)]
    pub closed: Option<Timestamp>,
}

/// Charges of one gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChargeReport {
    /// The gateway.
    pub gateway: GatewayId,
    /// Number of the batch, from 1. With no charges, the number of the last acknowledged batch, or 0.
    pub sequence: u64,
    /// Version of the accounts that the gateway has, 0 for none.
    #[serde(default)]
    pub known: u64,
    /// Charges since the last batch, at most [`MOST_CHARGES`], one for each account.
    #[serde(default)]
    pub charges: Vec<ReportedCharge>,
}

/// Charges of one account in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedCharge {
    /// Name of the account.
    pub account: String,
    /// Sum of the charges.
    pub charge: Money,
    /// Number of requests.
    pub requests: u64,
}

/// Reply to a report: the batch is booked, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportReply {
    /// Version of the accounts after this reply.
    pub known: u64,
    /// Further accounts have changed: report again.
    pub more: bool,
    /// Accounts changed since the version that the gateway had.
    pub accounts: Vec<AccountState>,
}

/// Booked charges of an account in one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRecord {
    /// Number of the record, ascending.
    pub number: u64,
    /// Time of booking.
    pub at: Timestamp,
    /// Start of the period in which it is booked.
    pub period: Timestamp,
    /// The gateway that reported it.
    pub gateway: GatewayId,
    /// Number of its batch.
    pub sequence: u64,
    /// Name of the account.
    pub account: String,
    /// Sum of the charges.
    pub charge: Money,
    /// Number of requests.
    pub requests: u64,
}

/// Distinguishes `null`, which removes a value, from an absent field.
fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_field_stays_and_null_removes() {
        let read = |json| serde_json::from_str::<AccountChange>(json).unwrap();
        assert_eq!(read("{}"), AccountChange::default());
        assert_eq!(read(r#"{"max_price":null}"#).max_price, Some(None));
        let money = Money::new("0.4", "EUR".parse().unwrap()).unwrap();
        let stated = read(r#"{"max_price":{"amount":"0.40","currency":"EUR"}}"#);
        assert_eq!(stated.max_price, Some(Some(money)));
        assert_eq!(
            serde_json::to_string(&AccountChange::default()).unwrap(),
            "{}"
        );
        assert!(serde_json::from_str::<AccountChange>(r#"{"name":"x"}"#).is_err());
    }
}

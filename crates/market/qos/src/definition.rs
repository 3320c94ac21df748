//! Quality-of-service definition: a service's servers, network, security, contract and price.
//!
//! The names are those of the WS-QoS schema, in XML and in JSON. A value that is not stated is `None`, not a number: an
//! offer without a processing time promises none.

use std::collections::BTreeMap;

use posthaste_units::{Rate, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;

/// The promises of an offer, or the needs of a requirement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Definition {
    /// Values for every operation that is not named.
    #[serde(rename = "defaultQoSInfo")]
    pub default: Info,
    /// Values by name of a WSDL operation. They take precedence over the default.
    #[serde(
        rename = "operationQoSInfo",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub operations: BTreeMap<String, Info>,
    /// Monitoring of the contract.
    #[serde(
        rename = "contractAndMonitoring",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub contracts: Vec<Contract>,
    /// Price of a call in an offer; maximum price in a requirement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
}

/// Quality of one operation, or of all that are not named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Info {
    /// Metrics of the servers.
    #[serde(rename = "serverQoSMetrics")]
    pub server: Server,
    /// Priorities of the network.
    #[serde(rename = "transportQoSPriorities")]
    pub transport: Priorities,
    /// Protocols for security and transactions.
    #[serde(
        rename = "securityAndTransaction",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub security: Vec<Protocols>,
}

/// Server metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Server {
    /// Maximum time from a request's arrival to its reply. Written in milliseconds.
    #[serde(with = "milliseconds", skip_serializing_if = "Option::is_none")]
    pub processing_time: Option<Span>,
    /// Minimum rate of requests per second.
    #[serde(with = "per_second", skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Rate>,
    /// Minimum share of requests that are answered well.
    #[serde(with = "share", skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Ratio>,
    /// Minimum share of time in which the service can be reached.
    #[serde(with = "share", skip_serializing_if = "Option::is_none")]
    pub availability: Option<Ratio>,
    /// Metrics that an ontology defines.
    #[serde(rename = "customMetric", skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom<Number>>,
}

/// Network priorities, 0 to 10. An offered number is adequate if it is at most the required one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Priorities {
    /// Priority of a short packet delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Priority>,
    /// Priority of a small variation of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Priority>,
    /// Priority of a high throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Priority>,
    /// Priority of a low packet loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_loss: Option<Priority>,
    /// Priorities that an ontology defines.
    #[serde(rename = "customPriority", skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom<Priority>>,
}

/// Protocols, and the number of them that the other side must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocols {
    /// The supported protocols.
    #[serde(rename = "protocol")]
    pub protocols: Vec<Term>,
    /// Number of them that the other side must have.
    pub requires: Requires,
}

/// Monitoring of a contract: protocols and trusted parties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Contract {
    /// The supported protocols.
    #[serde(rename = "protocol", skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<Term>,
    /// Parties that this side trusts.
    #[serde(rename = "trustedParty", skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<Party>,
    /// Number of each that the other side must have.
    pub requires: Requires,
}

/// Number of list members that the other side must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requires {
    /// None. The list only states the members that this side has.
    #[default]
    None,
    /// At least one.
    One,
    /// All of them.
    All,
}

/// A name that an ontology defines. The same name in two ontologies has two meanings.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The name.
    pub name: String,
    /// URL of the ontology.
    pub ontology: String,
}

/// A third party.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Party {
    /// Name for readers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// URL that identifies the party.
    pub url: String,
}

/// A value of something that an ontology defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "custom")]
pub struct Custom<T> {
    /// Name in the ontology.
    pub name: String,
    /// URL of the ontology.
    pub ontology: String,
    /// The value.
    pub value: T,
}

/// A finite number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Number(f64);

/// A transport priority, 0 to 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Definition {
    /// Approximate memory in bytes, excluding numbers, priorities and a price.
    pub(crate) fn bytes(&self) -> usize {
        let info = |info: &Info| size_of::<Info>() + info.held();
        let operations = self.operations.iter();
        let contracts = self.contracts.iter().map(|contract| {
            let parties = contract.parties.iter();
            let parties =
                parties.map(|party| size_of::<Party>() + party.name.len() + party.url.len());
            size_of::<Contract>() + terms(&contract.protocols) + parties.sum::<usize>()
        });
        let operations = operations.map(|(name, own)| name.len() + info(own));
        let held = self.default.held() + operations.sum::<usize>() + contracts.sum::<usize>();
        // A definition with only numbers, priorities and a price has a compact form.
        held + if held == 0 { 0 } else { size_of::<Self>() }
    }
}

impl Info {
    /// Bytes on the heap.
    fn held(&self) -> usize {
        let groups = self.security.iter();
        customs(&self.server.custom)
            + customs(&self.transport.custom)
            + groups
                .map(|group| size_of::<Protocols>() + terms(&group.protocols))
                .sum::<usize>()
    }
}

fn customs<T>(customs: &[Custom<T>]) -> usize {
    let each = customs.iter();
    each.map(|custom| size_of::<Custom<T>>() + custom.name.len() + custom.ontology.len())
        .sum()
}

fn terms(terms: &[Term]) -> usize {
    let each = terms.iter();
    each.map(|term| size_of::<Term>() + term.name.len() + term.ontology.len())
        .sum()
}

impl Number {
    /// Returns `None` unless the number is finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Priority {
    /// Valid priorities.
    pub const RANGE: std::ops::RangeInclusive<u8> = 0..=10;

    /// Returns `None` outside [`Priority::RANGE`].
    pub fn new(value: u8) -> Option<Self> {
        Self::RANGE.contains(&value).then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<f64> for Number {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, &'static str> {
        Self::new(value).ok_or("a number must be finite")
    }
}

impl From<Number> for f64 {
    fn from(number: Number) -> Self {
        number.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, &'static str> {
        Self::new(value).ok_or("a transport priority is a whole number from 0 to 10")
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl<T> Custom<T> {
    /// Returns true if both have the same name and ontology.
    pub fn is_of(&self, other: &Self) -> bool {
        self.name == other.name && self.ontology == other.ontology
    }
}

impl Requires {
    /// The word in a document.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// Maximum processing time in ms: ten days. Up to this value every nanosecond has a distinct number.
const LONGEST: f64 = 864e6;

/// Description of a valid processing time.
pub(super) const MILLISECONDS: &str = "milliseconds, not negative, at most ten days";

/// Converts milliseconds. Returns `None` outside 0 to ten days.
pub(super) fn span_of_milliseconds(value: f64) -> Option<Span> {
    let nanos = (value * 1e6).round();
    (0.0..=LONGEST)
        .contains(&value)
        .then(|| Span::from_nanos(nanos as u64))
}

macro_rules! plain_number {
    ($module:ident, $type:ty, $read:expr, $write:expr, $wanted:expr) => {
        mod $module {
            use super::*;

            pub(super) fn serialize<S: serde::Serializer>(
                value: &Option<$type>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                let write: fn($type) -> f64 = $write;
                value.map(write).serialize(to)
            }

            pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
                from: D,
            ) -> Result<Option<$type>, D::Error> {
                let read: fn(f64) -> Option<$type> = $read;
                let Some(number) = Option::<f64>::deserialize(from)? else {
                    return Ok(None);
                };
                let wanted = || serde::de::Error::custom(format!("{number}: expected {}", $wanted));
                read(number).map(Some).ok_or_else(wanted)
            }
        }
    };
}
plain_number!(
    milliseconds,
    Span,
    span_of_milliseconds,
    Span::as_millis_f64,
    MILLISECONDS
);
plain_number!(
    per_second,
    Rate,
    Rate::per_second,
    Rate::as_per_second,
    "a number per second, not negative"
);
plain_number!(share, Ratio, Ratio::new, Ratio::get, "a share from 0 to 1");

//! A statement of quality: of a service's servers, its network, its security, its contract and its price.
//!
//! The names are those of the WS-QoS schema, in XML as in JSON. What is not stated is `None` and not a number:
//! an offer that says nothing of its processing time has promised none.

use std::collections::BTreeMap;

use posthaste_units::{Rate, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::Money;

/// What an offer promises or a requirement asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Definition {
    /// For every operation that is not named.
    #[serde(rename = "defaultQoSInfo")]
    pub default: Info,
    /// By the name of a WSDL operation; what stands here counts before what stands in the default.
    #[serde(
        rename = "operationQoSInfo",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub operations: BTreeMap<String, Info>,
    /// Who watches over the contract, and how.
    #[serde(
        rename = "contractAndMonitoring",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub contracts: Vec<Contract>,
    /// Of an offer: what a call costs. Of a requirement: what it may cost at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
}

/// Quality of one operation, or of all that are not named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Info {
    /// Of the servers.
    #[serde(rename = "serverQoSMetrics")]
    pub server: Server,
    /// Of the network.
    #[serde(rename = "transportQoSPriorities")]
    pub transport: Priorities,
    /// Protocols for security and transactions.
    #[serde(
        rename = "securityAndTransaction",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub security: Vec<Protocols>,
}

/// What servers do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Server {
    /// From a request's arrival to its reply, at most; in milliseconds as written.
    #[serde(with = "milliseconds", skip_serializing_if = "Option::is_none")]
    pub processing_time: Option<Span>,
    /// At least so many.
    #[serde(with = "per_second", skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Rate>,
    /// The share of requests that are answered well, at least.
    #[serde(with = "share", skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Ratio>,
    /// The share of time in which the service can be reached, at least.
    #[serde(with = "share", skip_serializing_if = "Option::is_none")]
    pub availability: Option<Ratio>,
    /// Metrics that an ontology defines.
    #[serde(rename = "customMetric", skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom<Number>>,
}

/// What matters of the network, 0 to 10: an offer's number is enough where it is at most the one asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Priorities {
    /// How long a packet takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Priority>,
    /// How much that varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Priority>,
    /// How much gets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Priority>,
    /// How many get lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_loss: Option<Priority>,
    /// Priorities that an ontology defines.
    #[serde(rename = "customPriority", skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom<Priority>>,
}

/// Protocols, and how many of them the other side must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocols {
    /// Which there are.
    #[serde(rename = "protocol")]
    pub protocols: Vec<Term>,
    /// How many of them the other side must have.
    pub requires: Requires,
}

/// How a contract is watched: by which protocols, trusting whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Contract {
    /// Which protocols there are.
    #[serde(rename = "protocol", skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<Term>,
    /// Whom this side trusts.
    #[serde(rename = "trustedParty", skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<Party>,
    /// How many of each the other side must have.
    pub requires: Requires,
}

/// How many of a list the other side must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requires {
    /// None: the list says what this side has.
    #[default]
    None,
    /// At least one.
    One,
    /// Every one.
    All,
}

/// A name that an ontology defines; the same name in two ontologies is two things.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The name.
    pub name: String,
    /// The ontology's URL.
    pub ontology: String,
}

/// A third party.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Party {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its address, by which it is known.
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
    /// The memory that it takes beside numbers, priorities and a price, in bytes, about.
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
        // Numbers, priorities and a price alone are kept in less.
        held + if held == 0 { 0 } else { size_of::<Self>() }
    }
}

impl Info {
    /// Bytes of what it refers to.
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
    /// `None` where it is not finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Priority {
    /// The least and the most there is.
    pub const RANGE: std::ops::RangeInclusive<u8> = 0..=10;

    /// `None` outside [`Priority::RANGE`].
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
    /// Whether this is a value of the same thing.
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

/// The longest processing time, in ms: ten days. Up to here every nanosecond has a number of its own.
const LONGEST: f64 = 864e6;

/// What a processing time must be.
pub(super) const MILLISECONDS: &str = "milliseconds, not negative, at most ten days";

/// Milliseconds as a plain number.
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
                let wanted = || serde::de::Error::custom(format!("{number}: want {}", $wanted));
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

//! Mismatches between an offer and a requirement, as messages for users.

use std::fmt;

use jiff::Timestamp;
use posthaste_units::{Rate, Ratio, Span};
use thiserror::Error;

use crate::definition::{Number, Priority, Requires, Term};
use crate::money::{Currency, Money};

/// One reason why an offer is not adequate.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mismatch<'d> {
    /// The offer has expired.
    #[error("expired at {0}")]
    Expired(Timestamp),
    /// The price is too high.
    #[error("price: {offered} offered, at most {most} wanted")]
    Price {
        /// Price of the offer.
        offered: Money,
        /// Maximum price.
        most: Money,
    },
    /// The offer has no price.
    #[error("price: none offered")]
    NoPrice,
    /// The prices cannot be compared.
    #[error("price: the exchange rate of {0} is unknown")]
    Currency(Currency),
    /// A value is not good enough or not offered.
    #[error("{}{name}: {} offered, at {bound} {wanted} wanted", prefix(*operation), offered.map_or_else(|| "nothing".to_owned(), |offered| offered.to_string()))]
    Amount {
        /// The operation; `None` for the default.
        operation: Option<&'d str>,
        /// Name of the value.
        name: &'d str,
        /// The offered value, if any.
        offered: Option<Amount>,
        /// "most" or "least".
        bound: &'static str,
        /// The required value.
        wanted: Amount,
    },
    /// No known ontology defines this custom metric, so its better direction is unknown.
    #[error("{}{name}: the ontology {ontology} does not define it, or is not known", prefix(*operation))]
    Undefined {
        /// The operation; `None` for the default.
        operation: Option<&'d str>,
        /// The metric.
        name: &'d str,
        /// Its ontology.
        ontology: &'d str,
    },
    /// A side lacks protocols that the other requires.
    #[error("{}{} of the protocols {} required by the {by}, {} lacking", prefix(*operation), requires.word(), names(required), names(lacking))]
    Protocols {
        /// The operation; `None` for the default or for the contract.
        operation: Option<&'d str>,
        /// The side with the requirement.
        by: Side,
        /// Required number.
        requires: Requires,
        /// The protocols of the requirement.
        required: Vec<&'d Term>,
        /// Those that the other side lacks.
        lacking: Vec<&'d Term>,
    },
    /// A side does not trust the parties that the other requires.
    #[error("{} of the trusted parties {} required by the {by}", requires.word(), required.join(", "))]
    Parties {
        /// The side with the requirement.
        by: Side,
        /// Required number.
        requires: Requires,
        /// URLs of the required parties.
        required: Vec<&'d str>,
    },
}

/// A value in a mismatch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Time.
    Time(Span),
    /// Events per second.
    Rate(Rate),
    /// A share.
    Share(Ratio),
    /// A transport priority.
    Priority(Priority),
    /// A number that an ontology defines.
    Number(Number),
}

macro_rules! amount_of {
    ($($from:ty => $kind:ident,)*) => {
        $(impl From<$from> for Amount {
            fn from(amount: $from) -> Self {
                Self::$kind(amount)
            }
        })*
    };
}
amount_of! {
    Span => Time,
    Rate => Rate,
    Ratio => Share,
    Priority => Priority,
    Number => Number,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Share(share) => share.fmt(f),
            Self::Priority(priority) => priority.get().fmt(f),
            Self::Number(number) => number.get().fmt(f),
        }
    }
}

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side with the offer.
    Provider,
    /// The side with the requirement.
    Client,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provider => "provider",
            Self::Client => "client",
        })
    }
}

fn prefix(operation: Option<&str>) -> String {
    operation.map_or_else(String::new, |name| format!("{name}: "))
}

fn names(terms: &[&Term]) -> String {
    let names: Vec<&str> = terms.iter().map(|term| term.name.as_str()).collect();
    names.join(", ")
}

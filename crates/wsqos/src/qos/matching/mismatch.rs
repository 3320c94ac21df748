//! What speaks against an offer, for people.

use std::fmt;

use jiff::Timestamp;
use posthaste_units::{Rate, Ratio, Span};
use thiserror::Error;

use crate::qos::definition::{Number, Priority, Requires, Term};
use crate::qos::money::{Currency, Money};

/// One thing that speaks against an offer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mismatch<'d> {
    /// Its end has come.
    #[error("expired at {0}")]
    Expired(Timestamp),
    /// It costs too much.
    #[error("price: {offered} offered, at most {most} wanted")]
    Price {
        /// What it costs.
        offered: Money,
        /// What it may.
        most: Money,
    },
    /// It does not say what it costs.
    #[error("price: none offered")]
    NoPrice,
    /// Prices cannot be compared.
    #[error("price: nobody has said what 1 {0} is worth")]
    Currency(Currency),
    /// Something that is not good enough, or not offered.
    #[error("{}{what}: {} offered, at {bound} {wanted} wanted", of(*operation), offered.map_or_else(|| "nothing".to_owned(), |offered| offered.to_string()))]
    Amount {
        /// Of which operation; none for the default.
        operation: Option<&'d str>,
        /// Of what.
        what: &'d str,
        /// What is offered, if anything.
        offered: Option<Amount>,
        /// "most" or "least".
        bound: &'static str,
        /// What is wanted.
        wanted: Amount,
    },
    /// A custom metric that no known ontology defines: which way is better is not known.
    #[error("{}{name}: the ontology {ontology} does not define it, or is not known", of(*operation))]
    Undefined {
        /// Of which operation; none for the default.
        operation: Option<&'d str>,
        /// The metric.
        name: &'d str,
        /// Its ontology.
        ontology: &'d str,
    },
    /// A side lacks protocols that the other requires.
    #[error("{}{} of the protocols {} required by the {by}, {} lacking", of(*operation), requires.word(), names(required), names(lacking))]
    Protocols {
        /// Of which operation; none for the default, or for the contract.
        operation: Option<&'d str>,
        /// Who requires them.
        by: Side,
        /// How many.
        requires: Requires,
        /// Which it lists.
        required: Vec<&'d Term>,
        /// Which of them the other side does not have.
        lacking: Vec<&'d Term>,
    },
    /// A side does not trust whom the other requires.
    #[error("{} of the trusted parties {} required by the {by}", requires.word(), required.join(", "))]
    Parties {
        /// Who requires them.
        by: Side,
        /// How many.
        requires: Requires,
        /// Their URLs.
        required: Vec<&'d str>,
    },
}

/// How much of something there is.
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
    /// What an ontology counts.
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

/// One of the two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one who offers.
    Provider,
    /// The one who asks.
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

fn of(operation: Option<&str>) -> String {
    operation.map_or_else(String::new, |name| format!("{name}: "))
}

fn names(terms: &[&Term]) -> String {
    let names: Vec<&str> = terms.iter().map(|term| term.name.as_str()).collect();
    names.join(", ")
}

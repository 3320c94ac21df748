//! WS-QoS: what offers promise, what requirements ask for, and whether the one is enough for the other.
//!
//! A [`Definition`] says it for both: an [`Offer`] has a price and an end, a [`Requirement`] may have a price at most. Both are
//! read from XML ([`Document::read`]) in the vocabulary of the WS-QoS schema, or from JSON (serde, the same
//! names), strictly and within [`bounds`]. An [`Ontology`] says which way a custom metric is better, [`Rates`]
//! what a currency is worth. [`objections`] says what speaks against an offer, [`is_adequate`] whether
//! anything does, and [`Ranking`] which of several adequate offers is best.
//!
//! Where offers come from, how they are kept and found is a broker's.

pub mod bounds;
mod definition;
mod document;
mod matching;
mod money;
mod ontology;
mod ranking;
mod xml;

pub use definition::{
    Contract, Custom, Definition, Info, Number, Party, Priorities, Priority, Protocols, Requires,
    Server, Term,
};
pub use document::{Document, Offer, Offers, Requirement};
pub use matching::{Amount, Mismatch, Side, World, compare, is_adequate, objections};
pub use money::{Currency, Money, MoneyError, Rates};
pub(crate) use money::{decimal_text, micros};
pub use ontology::{Direction, Metric, Ontologies, Ontology};
pub use ranking::{Ranking, Weights};
pub use xml::{DocumentError, NAMESPACES};

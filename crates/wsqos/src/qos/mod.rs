//! WS-QoS: offers, requirements and their comparison.
//!
//! A [`Definition`] is the common part of both. An [`Offer`] adds an end and needs a price, a [`Requirement`] may state
//! a maximum price. Both are read strictly and within [`bounds`], from XML in the vocabulary of the WS-QoS schema
//! ([`Document::read`]) or from JSON (serde, the same names). An [`Ontology`] defines the better direction of a custom
//! metric, [`Rates`] are exchange rates. [`objections`] lists the mismatches of an offer, [`is_adequate`] tests for
//! any, and [`Ranking`] orders adequate offers.
//!
//! Sources, storage and search of offers belong to a broker.

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

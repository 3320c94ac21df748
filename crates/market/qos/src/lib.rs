//! QoS offers and requirements: documents, comparison, ranking, a search index, and DSCP marks.
//!
//! A [`Definition`] is the common part of an offer and a requirement. An [`Offer`] adds an end and needs a price, a
//! [`Requirement`] may state a maximum price. Both are read strictly and within [`bounds`], from XML in the vocabulary
//! of the WS-QoS schema ([`Document::read`]) or from JSON (serde, the same names). An [`Ontology`] defines the better
//! direction of a custom metric, [`Rates`] are exchange rates. [`objections`] lists the mismatches of an offer,
//! [`is_adequate`] tests for any, [`Ranking`] orders adequate offers, and [`index`] finds the cheapest one.
//! [`selection`] chooses the offer of one request by promised and measured quality. [`marking`] selects the DSCP mark of a
//! reply. [`QosBlock`] reads a request's SOAP header.
//!
//! Sources and storage of offers belong to a broker.
//!
//! # Rules
//!
//! - `None` is an unstated value.
//! - One comparison visits an offer and a requirement and calls back with each mismatch. A caller that needs yes or no
//!   stops at the first, a caller that needs reasons continues, so their results cannot differ. A test implements the
//!   rules a second time in the simplest form and compares.
//! - Money is counted in whole millionths.
//! - A new metric is a field, a line each in `xml::read`, in `xml::write` and in the comparison
//!   (`OperationPair::compare`), and a line in the schema.

pub mod bounds;
mod definition;
mod document;
mod header;
pub mod index;
pub mod marking;
mod matching;
mod money;
mod ontology;
mod ranking;
pub mod selection;
mod xml;

pub use definition::{
    Contract, Custom, Definition, Info, Number, Party, Priorities, Priority, Protocols, Requires,
    Server, Term,
};
pub use document::{Document, Offer, Offers, Requirement};
pub use header::QosBlock;
pub use matching::{Amount, Mismatch, Side, World, compare, is_adequate, objections};
pub use money::{Currency, Money, MoneyError, Rates, decimal_text, micros};
pub use ontology::{Direction, Metric, Ontologies, Ontology};
pub use ranking::{Ranking, Weights};
pub use xml::{DocumentError, NAMESPACES};

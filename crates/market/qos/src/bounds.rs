//! Limits on the size of a document, offer or requirement in any format.
//!
//! The comparison of an offer with a requirement takes time in proportion to both. One that cannot be compared in
//! microseconds is rejected on arrival, instead of slowing down lookups.

use thiserror::Error;

use super::definition::{Custom, Definition, Info, Protocols, Term};
use super::document::{Document, Offer, Offers, Requirement};
use super::ontology::Ontology;

/// Maximum size of a document in bytes.
pub const BYTES: usize = 1 << 20;
/// Maximum length of a name, a unit or a URL in bytes.
pub const TEXT: usize = 512;
/// Maximum number of offers in one document.
pub const OFFERS: usize = 1_000;
/// Maximum number of documents that one includes.
pub const INCLUDES: usize = 16;
/// Maximum number of operations in a definition.
pub const OPERATIONS: usize = 128;
/// Maximum number of custom metrics, custom priorities, groups of protocols, and protocols or parties of one group.
pub const LIST: usize = 32;
/// Maximum number of names of each kind that an ontology defines.
pub const TERMS: usize = 1_000;

/// A limit is exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{count} {subject}: {most} at most")]
pub struct Excess {
    subject: &'static str,
    count: usize,
    most: usize,
}

fn count(subject: &'static str, count: usize, most: usize) -> Result<(), Excess> {
    if count <= most {
        Ok(())
    } else {
        Err(Excess {
            subject,
            count,
            most,
        })
    }
}

fn text(subject: &'static str, text: &str) -> Result<(), Excess> {
    count(subject, text.len(), TEXT)
}

fn name(name: &str) -> Result<(), Excess> {
    text("bytes of a name", name)
}

fn url(url: &str) -> Result<(), Excess> {
    text("bytes of a URL", url)
}

impl Document {
    /// Fails if a limit is exceeded.
    pub fn check(&self) -> Result<(), Excess> {
        match self {
            Self::Ontology(document) => ontology(document),
            Self::Requirement(requirement) => requirement.check(),
            Self::Offers(document) => offers(document),
        }
    }
}

impl Offer {
    /// Fails if a limit is exceeded.
    pub fn check(&self) -> Result<(), Excess> {
        name(&self.name)?;
        self.endpoint.as_deref().map_or(Ok(()), url)?;
        definition(&self.qos)
    }
}

impl Requirement {
    /// Fails if a limit is exceeded.
    pub fn check(&self) -> Result<(), Excess> {
        name(&self.name)?;
        definition(&self.qos)
    }
}

fn offers(offers: &Offers) -> Result<(), Excess> {
    count("offers", offers.offers.len(), OFFERS)?;
    count("includes", offers.includes.len(), INCLUDES)?;
    offers
        .includes
        .iter()
        .try_for_each(|include| url(include))?;
    offers.offers.iter().try_for_each(Offer::check)
}

fn definition(definition: &Definition) -> Result<(), Excess> {
    count("operations", definition.operations.len(), OPERATIONS)?;
    info(&definition.default)?;
    for (operation, own) in &definition.operations {
        name(operation)?;
        info(own)?;
    }
    count("contracts", definition.contracts.len(), LIST)?;
    for contract in &definition.contracts {
        terms(&contract.protocols)?;
        count("trusted parties", contract.parties.len(), LIST)?;
        for party in &contract.parties {
            name(&party.name)?;
            url(&party.url)?;
        }
    }
    Ok(())
}

fn ontology(ontology: &Ontology) -> Result<(), Excess> {
    count("metrics", ontology.metrics.len(), TERMS)?;
    count("priorities", ontology.priorities.len(), TERMS)?;
    count("protocols", ontology.protocols.len(), TERMS)?;
    for (term, metric) in &ontology.metrics {
        name(term)?;
        text("bytes of a unit", &metric.unit)?;
    }
    let names = ontology.priorities.iter().chain(&ontology.protocols);
    names.into_iter().try_for_each(|term| name(term))
}

fn info(info: &Info) -> Result<(), Excess> {
    customs("custom metrics", &info.server.custom)?;
    customs("custom priorities", &info.transport.custom)?;
    count("groups of protocols", info.security.len(), LIST)?;
    let groups = info.security.iter();
    groups
        .map(|Protocols { protocols, .. }| protocols)
        .try_for_each(|protocols| terms(protocols))
}

fn customs<T>(subject: &'static str, customs: &[Custom<T>]) -> Result<(), Excess> {
    count(subject, customs.len(), LIST)?;
    for custom in customs {
        name(&custom.name)?;
        url(&custom.ontology)?;
    }
    Ok(())
}

fn terms(terms: &[Term]) -> Result<(), Excess> {
    count("protocols", terms.len(), LIST)?;
    for term in terms {
        name(&term.name)?;
        url(&term.ontology)?;
    }
    Ok(())
}

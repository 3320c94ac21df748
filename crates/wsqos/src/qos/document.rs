//! What a `.wsqos` file holds: an ontology, a requirement, or offers.

use jiff::Timestamp;
use posthaste_soap::xml::Scanner;
use serde::{Deserialize, Serialize};

use super::bounds::{self, Excess};
use super::definition::Definition;
use super::ontology::Ontology;
use super::xml::{self, DocumentError};

/// A document of the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// What names mean.
    Ontology(Ontology),
    /// What a client asks for.
    Requirement(Requirement),
    /// What a provider promises.
    Offers(Offers),
}

/// A provider's offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// URLs of documents with more of them; nothing here fetches them.
    pub includes: Vec<String>,
    /// The offers.
    pub offers: Vec<Offer>,
}

/// A requirement: what an offer is compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Its name, for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it asks for.
    pub qos: Definition,
}

/// An offer: a definition that holds until its end. It always has a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// A class of service: Gold, Silver. One name stands once for a provider and an interface.
    pub name: String,
    /// From this moment on it is no more.
    pub expires: Timestamp,
    /// Where the service is called, if it says so: a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What it promises.
    pub qos: Definition,
}

impl Document {
    /// Reads a document; also where it is the element that `scanner` has started last, as inside a WSDL.
    pub fn read_from(scanner: &mut Scanner<'_>) -> Result<Self, DocumentError> {
        let document = xml::read(scanner)?;
        document.check()?;
        Ok(document)
    }

    /// Reads a document of at most [`bounds::BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document = xml::read_bytes(bytes)?;
        document.check()?;
        Ok(document)
    }

    /// The document as XML, in the first of [`NAMESPACES`](super::NAMESPACES).
    pub fn write(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>");
        self.write_into(&mut out);
        out.push('\n');
        out
    }

    /// Appends the document's root element, for another document to hold it.
    pub fn write_into(&self, out: &mut String) {
        xml::write(self, out);
    }

    /// Whether everything is within [`bounds`].
    pub fn check(&self) -> Result<(), Excess> {
        match self {
            Self::Ontology(ontology) => bounds::ontology(ontology),
            Self::Requirement(requirement) => requirement.check(),
            Self::Offers(offers) => bounds::offers(offers),
        }
    }
}

impl Offer {
    /// Whether everything is within [`bounds`].
    pub fn check(&self) -> Result<(), Excess> {
        bounds::offer(self)
    }
}

impl Requirement {
    /// Whether everything is within [`bounds`].
    pub fn check(&self) -> Result<(), Excess> {
        bounds::requirement(self)
    }
}

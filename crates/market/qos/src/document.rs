//! Content of a `.wsqos` file: an ontology, a requirement, or offers.

use jiff::Timestamp;
use posthaste_soap::xml::Scanner;
use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::ontology::Ontology;
use super::xml::{self, DocumentError};

/// A document of the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// Definitions of names.
    Ontology(Ontology),
    /// The needs of a client.
    Requirement(Requirement),
    /// The promises of a provider.
    Offers(Offers),
}

/// Offers of one provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// URLs of documents with more offers. Not fetched here.
    pub includes: Vec<String>,
    /// The offers.
    pub offers: Vec<Offer>,
}

/// Requirement of a client, compared with offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Name for readers; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The needed promises.
    pub qos: Definition,
}

/// An offer: a definition that holds until it expires. It always has a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Class of service, such as Gold or Silver. Unique for a provider and an interface.
    pub name: String,
    /// End of validity. The offer is expired from this moment on.
    pub expires: Timestamp,
    /// URL of the service, if stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The promises.
    pub qos: Definition,
}

impl Document {
    /// Reads a document from the element that `scanner` has started last, which may be inside a WSDL.
    pub fn read_from(scanner: &mut Scanner<'_>) -> Result<Self, DocumentError> {
        let document = xml::read(scanner)?;
        document.check()?;
        Ok(document)
    }

    /// Reads a document of at most [`bounds::BYTES`](super::bounds::BYTES).
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

    /// Appends the document's root element, for use inside another document.
    pub fn write_into(&self, out: &mut String) {
        xml::write(self, out);
    }
}

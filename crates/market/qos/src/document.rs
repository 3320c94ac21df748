//! Content of a `.wsqos` file: an ontology, a requirement, or offers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::definition::Definition;
use super::ontology::Ontology;

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

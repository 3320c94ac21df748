//! A service to register in a UDDI registry, and the result.

use super::messages::Version;

/// A service to register, and the registry.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// UDDI version. In version 3 publishers choose the keys and use them to find existing entries. In version 2 the
    /// registry assigns the keys: an entry with an empty key here is found by its name.
    pub version: Version,
    /// URL of the inquiry API.
    pub inquiry: String,
    /// URL of the publication API.
    pub publish: String,
    /// URL of the security API.
    pub security: String,
    /// User name at the registry.
    pub user: String,
    /// Password of the user.
    pub password: String,
    /// Key and name of the provider's business. An existing business is not changed.
    pub business: (String, String),
    /// Key and name of the service.
    pub service: (String, String),
    /// Key of the interface type. In version 2 the name suffices if the user owns the type.
    pub kind: String,
    /// WSDL of the type. Needed to register a missing type.
    pub wsdl: Option<String>,
    /// Address of the service.
    pub endpoint: String,
    /// URL of its offers, if they are not in its description at `?wsdl`.
    pub offers: Option<String>,
}

/// A registered entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// `tModel`, `business` or `service`.
    pub entity: &'static str,
    /// Key of the entity.
    pub key: String,
    /// True if it was saved, false if it already existed.
    pub saved: bool,
}

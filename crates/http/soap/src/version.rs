//! Versions of SOAP.

/// SOAP version, identified by the envelope's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// SOAP 1.1, W3C Note of May 2000.
    Soap11,
    /// SOAP 1.2, W3C Recommendation of April 2007.
    Soap12,
}

impl Version {
    /// The envelope's namespace.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::Soap11 => "http://schemas.xmlsoap.org/soap/envelope/",
            Self::Soap12 => "http://www.w3.org/2003/05/soap-envelope",
        }
    }

    /// The version with the envelope namespace `namespace`.
    pub fn from_namespace(namespace: &str) -> Option<Self> {
        [Self::Soap11, Self::Soap12]
            .into_iter()
            .find(|version| version.namespace() == namespace)
    }

    /// Returns true if a header block with this role is for the ultimate receiver or for every node.
    pub(crate) fn is_ours(self, role: Option<&str>) -> bool {
        match (self, role) {
            (_, None | Some("")) => true,
            (Self::Soap11, Some(role)) => role == "http://schemas.xmlsoap.org/soap/actor/next",
            (Self::Soap12, Some(role)) => matches!(
                role.strip_prefix("http://www.w3.org/2003/05/soap-envelope/role/"),
                Some("next" | "ultimateReceiver")
            ),
        }
    }
}

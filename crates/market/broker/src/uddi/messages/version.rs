//! The two versions and their differences.

/// A version of UDDI, identified by the namespace of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Version 2: keys are UUIDs assigned by the registry, and lists have one page.
    V2,
    /// Version 3: keys are URIs that publishers may choose, and lists have pages.
    #[default]
    V3,
}

impl Version {
    /// Version with this number, if supported.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Namespace of the messages.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::V2 => "urn:uddi-org:api_v2",
            Self::V3 => "urn:uddi-org:api_v3",
        }
    }

    /// Key of the category system for types (version 3, section 11.1.1).
    pub const fn types(self) -> &'static str {
        match self {
            Self::V2 => "uuid:c1acf26d-9672-4404-9d70-39b756e62ab4",
            Self::V3 => "uddi:uddi.org:categorization:types",
        }
    }

    /// Returns true if lists can be requested from a given entry on (version 3, section 5.1.1).
    pub(crate) const fn has_pages(self) -> bool {
        matches!(self, Self::V3)
    }

    /// Attribute of every request that states the version.
    pub(crate) const fn generic(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::V2 => Some(("generic", "2.0")),
            Self::V3 => None,
        }
    }

    /// Attribute that states the kind of an access point: its scheme in version 2, its use in version 3.
    pub(crate) fn access_point(self, url: &str) -> (&'static str, &str) {
        match self {
            Self::V2 => (
                "URLType",
                url.split_once(':').map_or("other", |(scheme, _)| scheme),
            ),
            Self::V3 => ("useType", "endPoint"),
        }
    }
}

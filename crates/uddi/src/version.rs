//! The two versions, and in what they differ.

/// A version of UDDI, known by its messages' namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Version 2: keys are UUIDs that the registry gives, and lists have one page.
    V2,
    /// Version 3: keys are URIs that publishers may choose, and lists have pages.
    #[default]
    V3,
}

impl Version {
    /// The one of this number.
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// The namespace of its messages.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::V2 => "urn:uddi-org:api_v2",
            Self::V3 => "urn:uddi-org:api_v3",
        }
    }

    /// The key of the system of categories for types (version 3, section 11.1.1).
    pub const fn types(self) -> &'static str {
        match self {
            Self::V2 => "uuid:c1acf26d-9672-4404-9d70-39b756e62ab4",
            Self::V3 => "uddi:uddi.org:categorization:types",
        }
    }

    /// Whether a list can be asked for from a place in it on (version 3, section 5.1.1).
    pub(crate) const fn has_pages(self) -> bool {
        matches!(self, Self::V3)
    }

    /// What every request says of itself.
    pub(crate) const fn generic(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::V2 => Some(("generic", "2.0")),
            Self::V3 => None,
        }
    }

    /// What says how an access point is meant: a scheme in version 2, a use in version 3.
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

//! The request fields with preferences that a reply varies by.

/// The request fields besides Accept-Encoding that a reply varies by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VaryingFields {
    pub(crate) prefer: bool,
    pub(crate) save_data: bool,
}

impl VaryingFields {
    /// The fields of either set.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self {
            prefer: self.prefer || other.prefer,
            save_data: self.save_data || other.save_data,
        }
    }
}

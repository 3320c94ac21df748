//! The common side of HPACK and QPACK decoders.

use crate::streams::field_class::FieldClass;

/// A decoded field, valid until the next one.
#[derive(Clone, Copy, Debug)]
pub struct DecodedField<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The class by name and value.
    pub class: FieldClass,
}

/// Decodes the fields of replies.
pub(crate) trait FieldDecoder {
    /// A block that cannot be decoded.
    type Error;

    /// Decodes a whole block and calls `each` for each field.
    fn decode(
        &mut self,
        block: &[u8],
        each: impl FnMut(DecodedField<'_>),
    ) -> Result<(), Self::Error>;

    /// Number of changes of the dynamic table. While it stays the same, equal blocks have equal fields.
    fn table_changes(&self) -> u64;
}

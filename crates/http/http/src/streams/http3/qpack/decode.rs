//! Decoding of field sections (RFC 9204, section 4.5).

use thiserror::Error;

use super::static_table;
use crate::streams::field_class::FieldClass;
use crate::streams::field_decoder::{DecodedField, FieldDecoder};
use crate::streams::prefix_integer::{self, PrefixError};
use crate::streams::prefix_string;

/// Memory that the buffer of a string keeps, in bytes.
const KEPT: usize = 4096;

/// A section that cannot be decoded. The connection cannot continue (RFC 9204, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.reason())]
pub enum QpackError {
    /// The section ends inside a field.
    Cut,
    /// An integer beyond its limit.
    Integer,
    /// An index beyond the static table.
    Index,
    /// A reference to the dynamic table, which has no entries.
    Dynamic,
    /// A string with an invalid Huffman code.
    Huffman,
    /// A string beyond 256 KiB.
    String,
}

impl QpackError {
    /// The violation.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Cut => "a field section ends inside a field",
            Self::Integer => "an integer of a field section is too large",
            Self::Index => "a field section refers to an entry that does not exist",
            Self::Dynamic => "a field section refers to the dynamic table, whose capacity is 0",
            Self::Huffman => "a field section has an invalid Huffman code",
            Self::String => "a field of a field section is longer than 256 KiB",
        }
    }
}

impl From<PrefixError> for QpackError {
    fn from(error: PrefixError) -> Self {
        match error {
            PrefixError::Cut => Self::Cut,
            PrefixError::Integer => Self::Integer,
            PrefixError::String => Self::String,
            PrefixError::Huffman => Self::Huffman,
        }
    }
}

/// The decoder of a connection. It keeps the memory for strings and nothing else.
#[derive(Debug, Default)]
pub struct SectionDecoder {
    /// The name of the current field, if it has a Huffman code.
    name: Vec<u8>,
    /// The value of the current field, if it has a Huffman code.
    value: Vec<u8>,
}

impl SectionDecoder {
    /// Decodes a whole section and calls `each` for each field.
    pub fn decode(
        &mut self,
        mut section: &[u8],
        mut each: impl FnMut(DecodedField<'_>),
    ) -> Result<(), QpackError> {
        prefix(&mut section)?;
        while let Some(first) = section.first() {
            match first {
                0xc0.. => each(indexed(&mut section)?),
                0x80..0xc0 | 0..0x20 => return Err(QpackError::Dynamic),
                0x40..0x80 => each(self.named(&mut section)?),
                0x20..0x40 => each(self.literal(&mut section)?),
            }
        }
        for text in [&mut self.name, &mut self.value] {
            text.clear();
            text.shrink_to(KEPT);
        }
        Ok(())
    }

    /// A value with a name of the static table (RFC 9204, section 4.5.4).
    fn named<'s, 'b: 's>(
        &'s mut self,
        section: &mut &'b [u8],
    ) -> Result<DecodedField<'s>, QpackError> {
        const IS_STATIC: u8 = 0x10;
        if section.first().is_some_and(|first| first & IS_STATIC == 0) {
            return Err(QpackError::Dynamic);
        }
        let index = prefix_integer::decode(section, 4)?;
        let (name, _) = static_table::FIELDS.get(index).ok_or(QpackError::Index)?;
        let value = prefix_string::decode(section, 7, &mut self.value)?;
        Ok(DecodedField {
            name: name.as_bytes(),
            value,
            class: static_table::class(index).with_value(value),
        })
    }

    /// A value with a name of its own (RFC 9204, section 4.5.6).
    fn literal<'s, 'b: 's>(
        &'s mut self,
        section: &mut &'b [u8],
    ) -> Result<DecodedField<'s>, QpackError> {
        let name = prefix_string::decode(section, 3, &mut self.name)?;
        let value = prefix_string::decode(section, 7, &mut self.value)?;
        let class = FieldClass::of_name(name).with_value(value);
        Ok(DecodedField { name, value, class })
    }
}

impl FieldDecoder for SectionDecoder {
    type Error = QpackError;

    fn decode(
        &mut self,
        block: &[u8],
        each: impl FnMut(DecodedField<'_>),
    ) -> Result<(), QpackError> {
        Self::decode(self, block, each)
    }

    fn table_changes(&self) -> u64 {
        0
    }
}

/// Checks the prefix of a section (RFC 9204, section 4.5.1): it needs no insertions, and its base has any value.
fn prefix(section: &mut &[u8]) -> Result<(), QpackError> {
    match section.first() {
        Some(0) => *section = &section[1..],
        Some(_) => return Err(QpackError::Dynamic),
        None => return Err(QpackError::Cut),
    }
    // A base before the first insertion does not exist.
    match section.first() {
        Some(0x80..) => Err(QpackError::Dynamic),
        Some(_) => Ok(prefix_integer::skip(section, 7)?),
        None => Err(QpackError::Cut),
    }
}

/// A field of the static table (RFC 9204, section 4.5.2).
fn indexed(section: &mut &[u8]) -> Result<DecodedField<'static>, QpackError> {
    let index = prefix_integer::decode(section, 6)?;
    let (name, value) = static_table::FIELDS.get(index).ok_or(QpackError::Index)?;
    Ok(DecodedField {
        name: name.as_bytes(),
        value: value.as_bytes(),
        class: static_table::class(index),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and values.
    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn decoded(section: &[u8]) -> Result<Fields, QpackError> {
        let mut fields = Vec::new();
        let each = |field: DecodedField<'_>| {
            fields.push((field.name.to_vec(), field.value.to_vec()));
        };
        SectionDecoder::default().decode(section, each)?;
        Ok(fields)
    }

    #[test]
    fn the_example_without_a_table() {
        // RFC 9204, appendix B.1.
        let fields = decoded(b"\x00\x00\x51\x0b/index.html").unwrap();
        assert_eq!(fields, [(b":path".to_vec(), b"/index.html".to_vec())]);
    }

    #[test]
    fn the_examples_with_a_table_are_rejected() {
        // RFC 9204, appendices B.2 and B.4.
        assert_eq!(decoded(b"\x03\x81\x10\x11"), Err(QpackError::Dynamic));
        assert_eq!(decoded(b"\x05\x00\x80\xc1\x81"), Err(QpackError::Dynamic));
    }

    #[test]
    fn any_base_is_permitted_without_insertions() {
        for base in [
            &b"\x7e"[..],
            b"\x7f\x00",
            b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x3f",
        ] {
            let section = [b"\x00", base, b"\xd9"].concat();
            assert_eq!(decoded(&section).unwrap().len(), 1);
        }
        let long = b"\x00\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\xd9";
        assert_eq!(decoded(long), Err(QpackError::Integer));
        assert_eq!(decoded(b"\x00\x80\xd9"), Err(QpackError::Dynamic));
    }

    #[test]
    fn invalid_sections_have_their_errors() {
        for (section, error) in [
            (&b""[..], QpackError::Cut),
            (b"\x00", QpackError::Cut),
            (b"\x01\x00", QpackError::Dynamic),
            (b"\xff\x80", QpackError::Dynamic),
            (b"\x00\x7f", QpackError::Cut),
            // Indices, names and post-base references of the dynamic table.
            (b"\x00\x00\x80", QpackError::Dynamic),
            (b"\x00\x00\x40\x01a", QpackError::Dynamic),
            (b"\x00\x00\x10", QpackError::Dynamic),
            (b"\x00\x00\x00\x01a", QpackError::Dynamic),
            // Index 99, as a field and as a name.
            (b"\x00\x00\xff\x24", QpackError::Index),
            (b"\x00\x00\x5f\x54\x01a", QpackError::Index),
            (b"\x00\x00\xff\xff\xff\xff\xff\xff\x01", QpackError::Integer),
            (b"\x00\x00\x21a\x05ab", QpackError::Cut),
            (b"\x00\x00\x21", QpackError::Cut),
            (b"\x00\x00\x29\x00\x01a", QpackError::Huffman),
            (b"\x00\x00\x21a\x84\xff\xff\xff\xff", QpackError::Huffman),
            (b"\x00\x00\x21a\x7f\xff\xff\x7f", QpackError::String),
        ] {
            assert_eq!(decoded(section), Err(error), "{section:02x?}");
        }
    }
}

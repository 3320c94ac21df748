//! Decoding of field blocks (RFC 7541, section 3.2).
//!
//! A block is decoded to its end even if its fields are not wanted, because later blocks refer to the table. The work
//! is in proportion to the block: an index costs one look-up and no copy.

use thiserror::Error;

use super::table::DynamicTable;
use super::{TABLE_SIZE, static_table};
use crate::streams::field_class::FieldClass;
use crate::streams::field_decoder::{DecodedField, FieldDecoder};
use crate::streams::prefix_integer::{self, PrefixError};
use crate::streams::prefix_string;

/// A block that cannot be decoded. The connection cannot continue (RFC 9113, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.reason())]
pub enum HpackError {
    /// The block ends inside a field.
    Cut,
    /// An integer beyond 32 bits.
    Integer,
    /// An index without an entry.
    Index,
    /// A string with an invalid Huffman code.
    Huffman,
    /// A string beyond 256 KiB.
    String,
    /// A size of the dynamic table above the announced one, or after the first field.
    TableSize,
}

impl HpackError {
    /// The violation.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Cut => "a field block ends inside a field",
            Self::Integer => "an integer of a field block is too large",
            Self::Index => "a field block refers to an entry that does not exist",
            Self::Huffman => "a field block has an invalid Huffman code",
            Self::String => "a field of a field block is longer than 256 KiB",
            Self::TableSize => "a field block has an invalid update of the table size",
        }
    }
}

impl From<PrefixError> for HpackError {
    fn from(error: PrefixError) -> Self {
        match error {
            PrefixError::Cut => Self::Cut,
            PrefixError::Integer => Self::Integer,
            PrefixError::String => Self::String,
            PrefixError::Huffman => Self::Huffman,
        }
    }
}

/// The decoder of a connection.
#[derive(Debug)]
pub struct BlockDecoder {
    table: DynamicTable,
    /// The name of the current field, if it is neither in the block nor static.
    name: Vec<u8>,
    /// The value of the current field, if it has a Huffman code.
    value: Vec<u8>,
}

impl Default for BlockDecoder {
    fn default() -> Self {
        Self {
            table: DynamicTable::new(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl BlockDecoder {
    /// Decodes a whole block and calls `each` for each field.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        mut each: impl FnMut(DecodedField<'_>),
    ) -> Result<(), HpackError> {
        self.resize(&mut block)?;
        while let Some(first) = block.first() {
            match first {
                0x80.. => each(self.indexed(&mut block)?),
                0x40..0x80 => each(self.literal(&mut block, 6, true)?),
                0x20..0x40 => return Err(HpackError::TableSize),
                0..0x20 => each(self.literal(&mut block, 4, false)?),
            }
        }
        self.release();
        Ok(())
    }

    /// Applies updates of the table size: at most two, before the first field (RFC 7541, section 4.2).
    fn resize(&mut self, block: &mut &[u8]) -> Result<(), HpackError> {
        for _ in 0..2 {
            if !matches!(block.first(), Some(0x20..0x40)) {
                break;
            }
            let size = prefix_integer::decode(block, 5)?;
            if size > TABLE_SIZE {
                return Err(HpackError::TableSize);
            }
            self.table.resize(size);
        }
        Ok(())
    }

    #[inline]
    fn indexed(&self, block: &mut &[u8]) -> Result<DecodedField<'_>, HpackError> {
        let index = prefix_integer::decode(block, 7)?;
        self.entry(index)
    }

    fn literal<'s, 'b: 's>(
        &'s mut self,
        block: &mut &'b [u8],
        prefix: u32,
        insert: bool,
    ) -> Result<DecodedField<'s>, HpackError> {
        let index = prefix_integer::decode(block, prefix)?;
        let (name, class) = match index {
            0 => {
                let name = prefix_string::decode(block, 7, &mut self.name)?;
                (name, FieldClass::of_name(name))
            }
            1..static_table::FIRST_DYNAMIC => {
                let (name, _) = static_table::FIELDS[index - 1];
                (name.as_bytes(), static_table::class(index))
            }
            _ => {
                // Copied, because the insertion can evict the entry.
                let entry = self.table.get(index - static_table::FIRST_DYNAMIC);
                let (name, _, _) = entry.ok_or(HpackError::Index)?;
                self.name.clear();
                self.name.extend_from_slice(name);
                (&self.name[..], FieldClass::of_name(&self.name))
            }
        };
        let value = prefix_string::decode(block, 7, &mut self.value)?;
        let class = class.with_value(value);
        if insert {
            self.table.insert(name, value, class);
        }
        Ok(DecodedField { name, value, class })
    }

    #[inline]
    fn entry(&self, index: usize) -> Result<DecodedField<'_>, HpackError> {
        let (name, value, class) = match index {
            0 => return Err(HpackError::Index),
            1..static_table::FIRST_DYNAMIC => {
                let (name, value) = static_table::FIELDS[index - 1];
                (
                    name.as_bytes(),
                    value.as_bytes(),
                    static_table::class(index),
                )
            }
            _ => {
                let entry = self.table.get(index - static_table::FIRST_DYNAMIC);
                entry.ok_or(HpackError::Index)?
            }
        };
        Ok(DecodedField { name, value, class })
    }

    /// Gives back the memory of long strings.
    fn release(&mut self) {
        for text in [&mut self.name, &mut self.value] {
            text.clear();
            text.shrink_to(TABLE_SIZE);
        }
    }
}

impl FieldDecoder for BlockDecoder {
    type Error = HpackError;

    fn decode(
        &mut self,
        block: &[u8],
        each: impl FnMut(DecodedField<'_>),
    ) -> Result<(), HpackError> {
        Self::decode(self, block, each)
    }

    fn table_changes(&self) -> u64 {
        self.table.changes()
    }
}

//! Encoding of field blocks from the fields of a plan.
//!
//! The encoder does not keep the strings of its dynamic table. It remembers at which insertion each constant field
//! entered, and the sizes of the entries. A constant enters the table if it fits without an eviction: the fields of the
//! first requests stay, and a plan with many different paths does not evict the fields that all requests share.
//!
//! The last block of constants is kept, since the next request has the same block as long as no entry was added.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{FieldPlan, TABLE_SIZE, static_table};
use crate::streams::catalogue::{ConstantField, RequestField};
use crate::streams::{prefix_integer, prefix_string};

/// Longest block that is kept, in bytes.
const LAST_LIMIT: usize = 1024;

/// The encoder of a connection.
#[derive(Debug)]
pub struct BlockEncoder {
    plan: Arc<FieldPlan>,
    /// The insertion at which each constant entered last, from 1. 0 means never.
    positions: Vec<u32>,
    /// Sizes of the entries, oldest first.
    sizes: VecDeque<u16>,
    /// Insertions so far.
    inserted: u32,
    used: usize,
    capacity: usize,
    /// The smallest capacity since the last block, if the capacity changed (RFC 7541, section 4.2).
    smallest: Option<usize>,
    last: LastBlock,
}

/// The last block, if all its fields are constants, and none of them entered the table.
#[derive(Debug, Default)]
struct LastBlock {
    fields: Vec<ConstantField>,
    bytes: Vec<u8>,
    /// Insertions before the block.
    inserted: u32,
}

impl LastBlock {
    fn has(&self, fields: &[RequestField<'_>]) -> bool {
        let is_same = |(field, last): (&RequestField<'_>, _)| match field {
            RequestField::Constant(field) => field == last,
            RequestField::Variable(..) => false,
        };
        self.fields.len() == fields.len() && fields.iter().zip(&self.fields).all(is_same)
    }

    fn keep(&mut self, fields: &[RequestField<'_>], bytes: &[u8], inserted: u32) {
        self.forget();
        let is_constant = |field: &_| matches!(field, RequestField::Constant(_));
        if bytes.len() > LAST_LIMIT || !fields.iter().all(is_constant) {
            return;
        }
        self.fields
            .extend(fields.iter().filter_map(|field| match field {
                RequestField::Constant(field) => Some(*field),
                RequestField::Variable(..) => None,
            }));
        self.bytes.extend_from_slice(bytes);
        self.inserted = inserted;
    }

    fn forget(&mut self) {
        self.fields.clear();
        self.bytes.clear();
    }
}

impl BlockEncoder {
    /// Creates the encoder of a new connection.
    pub fn new(plan: Arc<FieldPlan>) -> Self {
        Self {
            positions: vec![0; plan.constant_count()],
            plan,
            sizes: VecDeque::new(),
            inserted: 0,
            used: 0,
            capacity: TABLE_SIZE,
            smallest: None,
            last: LastBlock::default(),
        }
    }

    /// Applies SETTINGS_HEADER_TABLE_SIZE of the peer. More than [`TABLE_SIZE`] is not used.
    pub fn limit(&mut self, peer: u32) {
        let capacity = (peer as usize).min(TABLE_SIZE);
        if capacity == self.capacity {
            return;
        }
        self.smallest = Some(self.smallest.map_or(capacity, |size| size.min(capacity)));
        self.capacity = capacity;
        self.last.forget();
        while self.used > capacity {
            let oldest = self
                .sizes
                .pop_front()
                .expect("used bytes belong to entries");
            self.used -= usize::from(oldest);
        }
    }

    /// Appends the block of a request.
    pub fn encode(&mut self, fields: &[RequestField<'_>], block: &mut Vec<u8>) {
        if let Some(smallest) = self.smallest.take() {
            if smallest < self.capacity {
                prefix_integer::encode(0x20, 5, smallest, block);
            }
            prefix_integer::encode(0x20, 5, self.capacity, block);
        }
        if self.last.inserted == self.inserted && self.last.has(fields) {
            block.extend_from_slice(&self.last.bytes);
            return;
        }
        let (start, before) = (block.len(), self.inserted);
        for field in fields {
            match field {
                RequestField::Constant(field) => self.constant(*field, block),
                RequestField::Variable(field, value) => {
                    block.extend_from_slice(self.plan.variable(*field));
                    prefix_string::encode(0, 7, value, block);
                }
            }
        }
        if self.inserted == before {
            self.last.keep(fields, &block[start..], before);
        }
    }

    #[inline]
    fn constant(&mut self, field: ConstantField, block: &mut Vec<u8>) {
        let position = self.positions[field.index()];
        let age = self.inserted - position;
        if position > 0 && (age as usize) < self.sizes.len() {
            prefix_integer::encode(0x80, 7, static_table::FIRST_DYNAMIC + age as usize, block);
            return;
        }
        let form = self.plan.constant(field);
        if form.size == 0 || self.used + form.size > self.capacity {
            block.extend_from_slice(self.plan.bytes(form.literal));
            return;
        }
        block.extend_from_slice(self.plan.bytes(form.inserted));
        self.sizes.push_back(form.size as u16);
        self.used += form.size;
        self.inserted += 1;
        self.positions[field.index()] = self.inserted;
    }
}

#[cfg(test)]
mod tests {
    use super::super::BlockDecoder;
    use super::*;
    use crate::streams::catalogue::FieldCatalogue;

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn decoded(decoder: &mut BlockDecoder, block: &[u8]) -> Fields {
        let mut fields = Vec::new();
        decoder
            .decode(block, |field| {
                fields.push((field.name.to_vec(), field.value.to_vec()))
            })
            .unwrap();
        fields
    }

    fn blocks(sizes: &[u32]) -> Vec<usize> {
        let mut catalogue = FieldCatalogue::default();
        let pairs = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "shop.example:8443"),
            (":path", "/books/by-isbn?isbn=3161484100"),
            ("user-agent", "posthaste/0.1.0"),
            ("authorization", "Bearer 01234567890"),
        ];
        let constants = pairs.map(|(name, value)| {
            let field = catalogue.constant(name.as_bytes(), value.as_bytes());
            RequestField::Constant(field.unwrap())
        });
        let id = catalogue.variable(b"x-request-id").unwrap();
        let mut encoder = BlockEncoder::new(Arc::new(FieldPlan::new(&catalogue)));
        let mut decoder = BlockDecoder::default();
        let mut lengths = Vec::new();
        for (number, size) in sizes.iter().enumerate() {
            encoder.limit(*size);
            let value = format!("{number}");
            let mut fields = constants.to_vec();
            fields.push(RequestField::Variable(id, value.as_bytes()));
            let mut block = Vec::new();
            encoder.encode(&fields, &mut block);
            let mut expected: Fields = pairs
                .iter()
                .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
                .collect();
            expected.push((b"x-request-id".to_vec(), value.into_bytes()));
            assert_eq!(decoded(&mut decoder, &block), expected);
            lengths.push(block.len());
        }
        lengths
    }

    #[test]
    fn repeated_constants_are_indices() {
        let lengths = blocks(&[4096; 3]);
        assert_eq!(lengths[1], lengths[2]);
        assert!(lengths[1] < 5 + 18 + 13, "{lengths:?}");
        assert!(lengths[0] > lengths[1] + 40, "{lengths:?}");
    }

    #[test]
    fn changes_of_the_table_size_are_announced() {
        let lengths = blocks(&[4096, 0, 0, 100, 70_000, 4096, 50, 4096]);
        assert!(lengths[1] > lengths[0], "{lengths:?}");
        assert_eq!(lengths[2] + 1, lengths[1]);
        assert!(lengths[5] < lengths[4], "{lengths:?}");
    }

    #[test]
    fn the_smallest_size_between_blocks_is_announced_first() {
        let mut encoder = BlockEncoder::new(Arc::new(FieldPlan::default()));
        for size in [4096, 100, 0, 30, 4096] {
            encoder.limit(size);
        }
        let mut block = Vec::new();
        encoder.encode(&[], &mut block);
        assert_eq!(block, b"\x20\x3f\xe1\x1f");
        block.clear();
        encoder.encode(&[], &mut block);
        assert!(block.is_empty());
    }
}

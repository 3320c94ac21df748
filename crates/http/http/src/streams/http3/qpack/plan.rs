//! The fields of a plan in their encoded forms, made once and shared by all connections.

use super::static_table;
use crate::streams::catalogue::{ConstantField, FieldCatalogue, VariableField};
use crate::streams::{prefix_integer, prefix_string};

/// A field of the static table: pattern and length of the index (RFC 9204, section 4.5.2).
const INDEXED: (u8, u32) = (0xc0, 6);
/// A value with a name of the static table (RFC 9204, section 4.5.4).
const NAMED: (u8, u32) = (0x50, 4);
/// In [`NAMED`]: no intermediary may store the value.
const NAMED_SECRET: u8 = 0x20;
/// A value with a name of its own (RFC 9204, section 4.5.6).
const LITERAL: (u8, u32) = (0x20, 3);
/// In [`LITERAL`]: no intermediary may store the value.
const LITERAL_SECRET: u8 = 0x10;

/// Encoded forms of a catalogue's fields.
#[derive(Debug, Default)]
pub struct FieldPlan {
    bytes: Vec<u8>,
    /// Ends of the forms in `bytes`: of the constant fields, then of the names of variable fields.
    ends: Vec<usize>,
    constants: usize,
}

impl FieldPlan {
    /// Encodes all fields of a catalogue.
    pub fn new(catalogue: &FieldCatalogue) -> Self {
        let mut plan = Self::default();
        for field in catalogue.constants() {
            encode_field(&field.name, &field.value, field.secret, &mut plan.bytes);
            plan.ends.push(plan.bytes.len());
        }
        plan.constants = plan.ends.len();
        for field in catalogue.variables() {
            encode_name(&field.name, field.secret, &mut plan.bytes);
            plan.ends.push(plan.bytes.len());
        }
        plan
    }

    /// A constant field.
    pub(super) fn constant(&self, field: ConstantField) -> &[u8] {
        self.form(field.index())
    }

    /// A variable field up to its value.
    pub(super) fn variable(&self, field: VariableField) -> &[u8] {
        self.form(self.constants + field.index())
    }

    fn form(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }
}

/// Appends a field: an index of the static table, or a literal.
pub(super) fn encode_field(name: &[u8], value: &[u8], secret: bool, bytes: &mut Vec<u8>) {
    if let Some(index) = static_table::index_of(name, value) {
        prefix_integer::encode(INDEXED.0, INDEXED.1, index, bytes);
    } else {
        encode_name(name, secret, bytes);
        prefix_string::encode(0, 7, value, bytes);
    }
}

fn encode_name(name: &[u8], secret: bool, bytes: &mut Vec<u8>) {
    let mark = |bit| if secret { bit } else { 0 };
    if let Some(index) = static_table::index_of_name(name) {
        let pattern = NAMED.0 | mark(NAMED_SECRET);
        prefix_integer::encode(pattern, NAMED.1, index, bytes);
    } else {
        let pattern = LITERAL.0 | mark(LITERAL_SECRET);
        prefix_string::encode(pattern, LITERAL.1, name, bytes);
    }
}

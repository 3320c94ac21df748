//! The fields of a plan in their encoded forms, made once and shared by all connections.

use super::{ENTRY_OVERHEAD, TABLE_SIZE, static_table};
use crate::streams::catalogue::{Constant, ConstantField, FieldCatalogue, Variable, VariableField};
use crate::streams::{prefix_integer, prefix_string};

/// Bits of a literal that enters the dynamic table, and the length of its index (RFC 7541, section 6.2.1).
const INSERTED: (u8, u32) = (0x40, 6);
/// A literal that does not enter the dynamic table (RFC 7541, section 6.2.2).
const LITERAL: (u8, u32) = (0x00, 4);
/// A literal that no intermediary may store (RFC 7541, section 6.2.3).
const NEVER_INDEXED: (u8, u32) = (0x10, 4);

/// Encoded forms of a catalogue's fields.
#[derive(Debug, Default)]
pub struct FieldPlan {
    bytes: Vec<u8>,
    constants: Vec<ConstantForm>,
    variables: Vec<Form>,
}

/// A part of the plan's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    start: u32,
    length: u32,
}

/// The encoded forms of a constant field.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantForm {
    /// The field without the dynamic table.
    pub(super) literal: Form,
    /// The field as a new entry of the dynamic table. Its size is 0 if it does not enter.
    pub(super) inserted: Form,
    /// Size of the entry, in bytes.
    pub(super) size: usize,
}

impl FieldPlan {
    /// Encodes all fields of a catalogue.
    pub fn new(catalogue: &FieldCatalogue) -> Self {
        let mut plan = Self::default();
        for constant in catalogue.constants() {
            let form = plan.constant_form(constant);
            plan.constants.push(form);
        }
        for Variable { name, secret } in catalogue.variables() {
            let kind = if *secret { NEVER_INDEXED } else { LITERAL };
            let form = plan.form(|bytes| encode_name(kind, name, bytes));
            plan.variables.push(form);
        }
        plan
    }

    fn constant_form(&mut self, constant: &Constant) -> ConstantForm {
        let Constant {
            name,
            value,
            secret,
        } = constant;
        let nothing = Form {
            start: 0,
            length: 0,
        };
        if let Some(index) = static_table::index_of(name, value) {
            return ConstantForm {
                literal: self.form(|bytes| prefix_integer::encode(0x80, 7, index, bytes)),
                inserted: nothing,
                size: 0,
            };
        }
        let mut form = |kind| {
            self.form(|bytes| {
                encode_name(kind, name, bytes);
                prefix_string::encode(0, 7, value, bytes);
            })
        };
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if *secret || size > TABLE_SIZE {
            let kind = if *secret { NEVER_INDEXED } else { LITERAL };
            return ConstantForm {
                literal: form(kind),
                inserted: nothing,
                size: 0,
            };
        }
        ConstantForm {
            literal: form(LITERAL),
            inserted: form(INSERTED),
            size,
        }
    }

    fn form(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Form {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        let small = |number: usize| u32::try_from(number).expect("a plan has less than 4 GiB");
        Form {
            start: small(start),
            length: small(self.bytes.len() - start),
        }
    }

    /// Number of constant fields.
    pub(super) fn constant_count(&self) -> usize {
        self.constants.len()
    }

    /// The forms of a constant field.
    pub(super) fn constant(&self, field: ConstantField) -> &ConstantForm {
        &self.constants[field.index()]
    }

    /// The literal form of a variable field up to its value.
    pub(super) fn variable(&self, field: VariableField) -> &[u8] {
        self.bytes(self.variables[field.index()])
    }

    pub(super) fn bytes(&self, form: Form) -> &[u8] {
        let start = form.start as usize;
        &self.bytes[start..start + form.length as usize]
    }
}

fn encode_name(kind: (u8, u32), name: &[u8], bytes: &mut Vec<u8>) {
    let (pattern, prefix) = kind;
    if let Some(index) = static_table::index_of_name(name) {
        prefix_integer::encode(pattern, prefix, index, bytes);
    } else {
        bytes.push(pattern);
        prefix_string::encode(0, 7, name, bytes);
    }
}

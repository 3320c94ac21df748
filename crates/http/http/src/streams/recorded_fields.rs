//! Copies of the fields of a head.

use crate::streams::event::EventSink;

/// Maximum length of all names and values, in bytes.
const LIMIT: usize = 4 << 10;

/// Names and values in the order of the block.
#[derive(Debug, Default)]
pub(crate) struct RecordedFields {
    bytes: Vec<u8>,
    /// Lengths of the name and of the value.
    lengths: Vec<(u16, u16)>,
    /// At least one field did not fit.
    is_full: bool,
}

impl RecordedFields {
    /// Adds a field.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        self.is_full |= self.bytes.len() + name.len() + value.len() > LIMIT;
        if self.is_full {
            return;
        }
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.lengths.push((name.len() as u16, value.len() as u16));
    }

    /// Forgets all fields.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
        self.is_full = false;
    }

    /// True if all fields since the last [`RecordedFields::clear`] are recorded.
    pub(crate) const fn is_complete(&self) -> bool {
        !self.is_full
    }

    /// Reports all fields.
    pub(crate) fn report(&self, token: u32, sink: &mut impl EventSink) {
        let mut rest = &self.bytes[..];
        for &(name, value) in &self.lengths {
            let (name, after) = rest.split_at(name.into());
            let (value, after) = after.split_at(value.into());
            sink.field(token, name, value);
            rest = after;
        }
    }
}

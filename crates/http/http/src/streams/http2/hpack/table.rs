//! The dynamic table of a decoder (RFC 7541, section 2.3.2).
//!
//! All names and values share one buffer of twice the capacity. Entries leave at its beginning and enter at its end.
//! The live part moves to the beginning when the end is reached, so each byte moves at most once per capacity.

use std::collections::VecDeque;

use super::{ENTRY_OVERHEAD, TABLE_SIZE};
use crate::streams::field_class::FieldClass;

/// Fields that the connection has seen, newest first.
#[derive(Debug)]
pub(super) struct DynamicTable {
    bytes: Vec<u8>,
    /// Newest at the front.
    entries: VecDeque<Entry>,
    /// Sizes of all entries with their overhead.
    used: usize,
    capacity: usize,
    /// Insertions and changes of the capacity so far.
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u16,
    name: u16,
    value: u16,
    class: FieldClass,
}

impl Entry {
    fn length(&self) -> usize {
        usize::from(self.name) + usize::from(self.value)
    }
}

impl DynamicTable {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            used: 0,
            capacity: TABLE_SIZE,
            changes: 0,
        }
    }

    /// Insertions and changes of the capacity so far.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Name, value and class of an entry, counted from 0 for the newest.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8], FieldClass)> {
        let entry = self.entries.get(index)?;
        let start = usize::from(entry.start);
        let bytes = &self.bytes[start..start + entry.length()];
        let (name, value) = bytes.split_at(usize::from(entry.name));
        Some((name, value, entry.class))
    }

    /// Changes the capacity, at most [`TABLE_SIZE`], and evicts entries beyond it.
    pub(super) fn resize(&mut self, capacity: usize) {
        debug_assert!(capacity <= TABLE_SIZE, "the decoder rejects larger sizes");
        self.capacity = capacity;
        self.changes += 1;
        self.evict(0);
    }

    /// Adds an entry. One larger than the capacity empties the table and is not added.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], class: FieldClass) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.changes += 1;
        self.evict(size);
        if size > self.capacity {
            return;
        }
        if self.bytes.len() + size > 2 * TABLE_SIZE {
            self.compact();
        }
        self.bytes.reserve(2 * TABLE_SIZE - self.bytes.len());
        let small = |length: usize| u16::try_from(length).expect("within two capacities");
        self.entries.push_front(Entry {
            start: small(self.bytes.len()),
            name: small(name.len()),
            value: small(value.len()),
            class,
        });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.used += size;
        debug_assert!(
            self.used <= self.capacity,
            "entries are within the capacity"
        );
    }

    /// Evicts the oldest entries until `size` more bytes fit, or the table is empty.
    fn evict(&mut self, size: usize) {
        while self.used + size > self.capacity
            && let Some(oldest) = self.entries.pop_back()
        {
            self.used -= oldest.length() + ENTRY_OVERHEAD;
        }
    }

    /// Moves the live bytes to the beginning of the buffer.
    fn compact(&mut self) {
        let start = self
            .entries
            .back()
            .map_or(self.bytes.len(), |oldest| oldest.start.into());
        self.bytes.copy_within(start.., 0);
        self.bytes.truncate(self.bytes.len() - start);
        for entry in &mut self.entries {
            entry.start -= start as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_many_turns_of_the_buffer() {
        let mut table = DynamicTable::new();
        for round in 0..10_000usize {
            let value = format!("{round}").repeat(1 + round % 40);
            table.insert(b"name", value.as_bytes(), FieldClass::Regular);
            assert!(table.bytes.len() <= 2 * TABLE_SIZE);
            for (age, index) in (0..table.entries.len()).enumerate() {
                let old = round - age;
                let expected = format!("{old}").repeat(1 + old % 40);
                assert_eq!(table.get(index).unwrap().1, expected.as_bytes());
            }
        }
    }

    #[test]
    fn an_entry_beyond_the_capacity_empties_the_table() {
        let mut table = DynamicTable::new();
        table.insert(b"a", b"b", FieldClass::Regular);
        table.insert(b"a", &[b'b'; TABLE_SIZE - 33], FieldClass::Regular);
        assert_eq!((table.entries.len(), table.used), (1, TABLE_SIZE));
        table.insert(b"a", &[b'b'; TABLE_SIZE - 32], FieldClass::Regular);
        assert_eq!((table.entries.len(), table.used), (0, 0));
    }
}

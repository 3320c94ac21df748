//! The open streams of a connection by their identifiers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Hashes identifiers of streams, which the client chooses itself.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio spreads consecutive numbers over all bits.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Open streams with the state `S`, by identifiers of the type `I`.
#[derive(Debug)]
pub(crate) struct StreamTable<I, S>(HashMap<I, S, BuildHasherDefault<IdHasher>>);

impl<I, S> Default for StreamTable<I, S> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<I: Copy + Hash + Ord, S> StreamTable<I, S> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn insert(&mut self, id: I, stream: S) {
        let previous = self.0.insert(id, stream);
        debug_assert!(previous.is_none(), "identifiers are used once");
    }

    pub(crate) fn get(&self, id: I) -> Option<&S> {
        self.0.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut S> {
        self.0.get_mut(&id)
    }

    pub(crate) fn remove(&mut self, id: I) -> Option<S> {
        self.0.remove(&id)
    }

    /// All streams, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &S)> {
        self.0.iter().map(|(id, stream)| (*id, stream))
    }

    /// All streams, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut S)> {
        self.0.iter_mut().map(|(id, stream)| (*id, stream))
    }

    /// Identifiers of the streams that match, in ascending order.
    pub(crate) fn matching(&self, matches: impl Fn(I, &S) -> bool) -> Vec<I> {
        let streams = self.iter().filter(|(id, stream)| matches(*id, stream));
        let mut ids: Vec<I> = streams.map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }
}

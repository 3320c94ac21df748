//! The cache of compressed replies: repeated content is compressed once.
//!
//! The key is the uncompressed content, compared byte by byte. Entries thus never become stale, clients get exactly the
//! content that the upstream just sent, and no rule of HTTP caching applies. A reply is stored at its second
//! occurrence, since unique content is not worth the memory. A full cache first evicts entries not requested again.

use std::hash::BuildHasher as _;

use bytes::Bytes;
use posthaste_compression::{STEPS, Step, Steps};
use posthaste_units::Size;
use quick_cache::unsync::DefaultLifecycle;
use quick_cache::{DefaultHashBuilder, Weighter, unsync};

/// Compressed forms of a message, by step.
#[derive(Clone, Default)]
pub(crate) struct CompressedForms([Option<Bytes>; STEPS.len()]);

/// The cache of one thread.
pub(crate) struct ReplyCache {
    kept: unsync::Cache<Bytes, CompressedForms, ByLength, DefaultHashBuilder>,
    /// Hashes of recent messages, each in the slot given by the hash.
    seen: Box<[u64]>,
    hasher: DefaultHashBuilder,
}

/// Slots for recent hashes.
const SEEN: usize = 4096;

/// Assumed size of a reply, for sizing the table.
const USUAL: u64 = 8 << 10;

#[derive(Clone)]
struct ByLength;

impl Weighter<Bytes, CompressedForms> for ByLength {
    fn weight(&self, message: &Bytes, forms: &CompressedForms) -> u64 {
        let compressed = forms.0.iter().flatten().map(Bytes::len);
        (message.len() + compressed.sum::<usize>()) as u64
    }
}

impl CompressedForms {
    /// The form compressed with `step`.
    pub(crate) fn by(&self, step: Step) -> Option<&Bytes> {
        self.0[step.index()].as_ref()
    }

    /// Steps with a compressed form.
    pub(crate) fn steps(&self) -> Steps {
        let there = STEPS.into_iter().filter(|step| self.by(*step).is_some());
        there.fold(Steps::default(), Steps::with)
    }
}

impl ReplyCache {
    /// Creates a cache of `capacity` bytes, counting messages and compressed forms. With 0 bytes it is disabled.
    pub(crate) fn new(capacity: Size) -> Self {
        let (capacity, hasher) = (capacity.as_bytes(), DefaultHashBuilder::default());
        let items = usize::try_from(capacity / USUAL).unwrap_or(usize::MAX);
        let lifecycle = DefaultLifecycle::default();
        Self {
            kept: unsync::Cache::with(items, capacity, ByLength, hasher.clone(), lifecycle),
            seen: vec![0; SEEN].into(),
            hasher,
        }
    }

    /// Returns the compressed forms of `message`.
    pub(crate) fn find(&self, message: &[u8]) -> Option<&CompressedForms> {
        self.is_on().then(|| self.kept.get(message)).flatten()
    }

    /// Stores the form compressed with `step`, if `message` occurred before.
    pub(crate) fn keep(&mut self, message: &[u8], step: Step, compressed: &Bytes) {
        if !self.is_on() || !self.came_before(message) {
            return;
        }
        let mut forms = self.find(message).cloned().unwrap_or_default();
        forms.0[step.index()] = Some(compressed.clone());
        self.kept.insert(Bytes::copy_from_slice(message), forms);
        debug_assert!(
            self.kept.weight() <= self.kept.capacity(),
            "the cache holds more than its bytes"
        );
    }

    fn is_on(&self) -> bool {
        self.kept.capacity() > 0
    }

    fn came_before(&mut self, message: &[u8]) -> bool {
        let hash = self.hasher.hash_one(message);
        let slot = &mut self.seen[hash as usize % SEEN];
        std::mem::replace(slot, hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unique message of `length` bytes.
    fn message(number: u32, length: usize) -> Vec<u8> {
        let mut message = vec![b'x'; length];
        message[..4].copy_from_slice(&number.to_be_bytes());
        message
    }

    fn keep(cache: &mut ReplyCache, message: &[u8], step: Step) {
        let packed = Bytes::from(format!("{} {}", step, message.len()));
        cache.keep(message, step, &packed);
    }

    #[test]
    fn repeated_messages_are_cached_for_each_step() {
        let mut cache = ReplyCache::new(Size::from_bytes(1 << 20));
        let book = message(1, 5000);
        keep(&mut cache, &book, Step::Gzip1);
        assert!(cache.find(&book).is_none(), "it came once");
        keep(&mut cache, &book, Step::Gzip1);
        keep(&mut cache, &book, Step::Zstd3);
        let found = cache.find(&book).unwrap();
        assert_eq!(found.by(Step::Gzip1).unwrap(), "gzip-1 5000");
        assert_eq!(found.by(Step::Zstd3).unwrap(), "zstd-3 5000");
        let steps = Steps::default().with(Step::Gzip1).with(Step::Zstd3);
        assert_eq!(found.steps(), steps);
        // One different byte makes a different message.
        let mut other = book.clone();
        other[4999] ^= 1;
        assert!(cache.find(&other).is_none() && cache.find(&book[..4999]).is_none());
    }

    #[test]
    fn the_room_is_a_bound_and_what_is_asked_for_stays() {
        let room = 1 << 20;
        let mut cache = ReplyCache::new(Size::from_bytes(room));
        let hot = message(0, 10_000);
        for number in 1..2000 {
            for _ in 0..2 {
                keep(&mut cache, &hot, Step::Gzip1);
                keep(&mut cache, &message(number, 10_000), Step::Gzip1);
            }
            assert!(cache.kept.weight() <= room);
            assert!(cache.find(&hot).is_some(), "gone after {number} others");
        }
        let kept = (1..2000).filter(|number| cache.find(&message(*number, 10_000)).is_some());
        assert!((50..105).contains(&kept.count()));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut cache = ReplyCache::new(Size::from_bytes(0));
        let book = message(1, 1000);
        for _ in 0..3 {
            keep(&mut cache, &book, Step::Gzip1);
        }
        assert!(cache.find(&book).is_none());
    }
}

//! Keyed hashes of the names of clients.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use posthaste_serve::environment;

/// Hashes names with a random key. They come from outside, so that known hashes would let a client choose whose turn it
/// takes.
#[derive(Clone, Debug)]
pub(super) struct ClientHasher(DefaultHasher);

impl ClientHasher {
    /// Draws the key.
    pub(super) fn new() -> Self {
        let key = environment::random::<16>("hashes of clients");
        let mut keyed = DefaultHasher::new();
        keyed.write(&key.expect("the system's random numbers"));
        Self(keyed)
    }

    pub(super) fn hash(&self, name: &str) -> u64 {
        let mut hasher = self.0.clone();
        name.hash(&mut hasher);
        hasher.finish()
    }
}

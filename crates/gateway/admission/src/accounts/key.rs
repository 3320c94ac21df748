//! API keys in constant time.
//!
//! Stored are SHA-256 digests of keys. A search for a digest itself would take longer the more of it matches, and tell
//! an attacker about it. So digests are replaced by tags: HMAC-SHA256 (RFC 2104) under a random key of the process. The
//! attacker cannot compute tags, and the time of a search for one tells nothing about the digests.

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use subtle::ConstantTimeEq as _;

/// Computes tags of API keys.
#[derive(Clone)]
pub struct KeyHasher {
    secret: Key,
    none: KeyTag,
}

/// Tag of an API key. Equality is tested in constant time.
#[derive(Clone)]
pub struct KeyTag([u8; 32]);

impl KeyHasher {
    /// Creates a hasher from 32 random bytes, which must stay secret.
    pub fn new(bytes: &[u8; 32]) -> Self {
        let secret = Key::new(HMAC_SHA256, bytes);
        // No digest has this length.
        let none = KeyTag::new(&secret, b"");
        Self { secret, none }
    }

    /// Tag of a key as presented.
    pub fn of_key(&self, key: &[u8]) -> KeyTag {
        KeyTag::new(&self.secret, digest(&SHA256, key).as_ref())
    }

    /// Tag of a key with this SHA-256 digest.
    pub fn of_digest(&self, digest: &[u8; 32]) -> KeyTag {
        KeyTag::new(&self.secret, digest)
    }

    /// Tag that no key has.
    pub(super) const fn of_no_key(&self) -> &KeyTag {
        &self.none
    }
}

impl KeyTag {
    fn new(secret: &Key, digest: &[u8]) -> Self {
        let tag = sign(secret, digest);
        Self(tag.as_ref().try_into().expect("a tag has 32 bytes"))
    }

    /// The first bytes, for a map.
    pub(super) fn prefix(&self) -> u64 {
        let bytes = self.0.first_chunk();
        u64::from_be_bytes(*bytes.expect("a tag has 32 bytes"))
    }
}

impl PartialEq for KeyTag {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyTag {}

impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher(secret)")
    }
}

impl std::fmt::Debug for KeyTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyTag(secret)")
    }
}

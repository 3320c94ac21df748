//! API keys in constant time.
//!
//! Stored are SHA-256 digests of keys. A search for a digest itself would take longer the more of it matches, and tell
//! an attacker about it. So digests are replaced by tags: HMAC-SHA256 (RFC 2104) under a random key of the process. The
//! attacker cannot compute tags, and the time of a search for one tells nothing about the digests.

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// Computes tags of API keys.
#[derive(Clone)]
pub struct KeyHasher {
    code: Hmac<Sha256>,
    none: KeyTag,
}

/// Tag of an API key. Equality is tested in constant time.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyTag(CtOutput<Hmac<Sha256>>);

impl KeyHasher {
    /// Creates a hasher from 32 random bytes, which must stay secret.
    pub fn new(bytes: &[u8; 32]) -> Self {
        // RFC 2104, section 2: a key shorter than SHA-256's block is padded with zeros.
        let mut block = [0; 64];
        block[..bytes.len()].copy_from_slice(bytes);
        let code = Hmac::new(&block.into());
        // No digest has this length.
        let none = KeyTag(code.clone().finalize());
        Self { code, none }
    }

    /// Tag of a key as presented.
    pub fn of_key(&self, key: &[u8]) -> KeyTag {
        self.of_digest(&Sha256::digest(key).into())
    }

    /// Tag of a key with this SHA-256 digest.
    pub fn of_digest(&self, digest: &[u8; 32]) -> KeyTag {
        KeyTag(self.code.clone().chain_update(digest).finalize())
    }

    /// Tag that no key has.
    pub(super) const fn of_no_key(&self) -> &KeyTag {
        &self.none
    }
}

impl KeyTag {
    /// The first bytes, for a map.
    pub(super) fn prefix(&self) -> u64 {
        let bytes = self.0.as_bytes().first_chunk();
        u64::from_be_bytes(*bytes.expect("a tag has 32 bytes"))
    }
}

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

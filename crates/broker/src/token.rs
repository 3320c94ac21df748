//! Access tokens for publishing. A token is shown once, at its creation; a store keeps only its hash.
//!
//! A token has 256 random bits, so an unsalted, unstretched hash reveals nothing about it. A provider may have several
//! tokens, so that it can switch to a new one before the old one is revoked.

use std::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

/// A valid token and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Number of the token, used for revocation and in the log.
    pub(crate) number: u64,
    /// Provider that may publish with it.
    pub(crate) provider: String,
    /// Hash of the token.
    pub(crate) hash: Hash,
}

impl Hash {
    /// Hash of the token in a request.
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

//! Who may publish. A token is shown once, when it is made; a store knows its hash.
//!
//! A token has 256 bits of chance, so that a hash without salt or stretching says nothing about it. A provider may
//! have several: the new one is used before the old one is revoked, without a gap.

use std::fmt;

use sha2::{Digest, Sha256};

/// What a store keeps of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

/// A valid token, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The token's number, by which it is revoked and stands in the log.
    pub(crate) number: u64,
    /// Whose offers it may change.
    pub(crate) provider: String,
    /// The token's hash.
    pub(crate) hash: Hash,
}

impl Hash {
    /// Of what a request brings.
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

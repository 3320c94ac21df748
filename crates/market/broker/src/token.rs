//! Access tokens for publishing, reports and accounts. A token is shown once, at its creation; a store keeps only its
//! hash.
//!
//! A token has 256 random bits, so an unsalted, unstretched hash reveals nothing about it. A provider may have several
//! tokens, so that it can switch to a new one before the old one is revoked.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use thiserror::Error;

/// SHA-256 hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

/// A valid token and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Number of the token, used for revocation and in the log.
    pub(crate) number: u64,
    /// Provider that may publish with it, or name of the bearer.
    pub(crate) provider: String,
    /// Hash of the token.
    pub(crate) hash: Hash,
    /// Rights of its bearer.
    pub(crate) role: TokenRole,
}

/// Rights of a token's bearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenRole {
    /// Publishes offers.
    #[default]
    Provider,
    /// Reports charges and measured quality.
    Gateway,
    /// Adds, changes and closes accounts, and reads charges.
    Operator,
    /// Of a later version. Permits nothing.
    Unknown,
}

/// Every role, except the unknown one.
const ROLES: [TokenRole; 3] = [TokenRole::Provider, TokenRole::Gateway, TokenRole::Operator];

impl TokenRole {
    /// Its name in stores and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Gateway => "gateway",
            Self::Operator => "operator",
            Self::Unknown => "unknown",
        }
    }

    /// Role of a stored token. One of a later version is unknown.
    pub(crate) fn of_name(name: &str) -> Self {
        let known = ROLES.into_iter().find(|role| role.name() == name);
        known.unwrap_or(Self::Unknown)
    }
}

impl Hash {
    /// Hash of the token in a request.
    pub(crate) fn from_token(token: &str) -> Self {
        let digest = digest(&SHA256, token.as_bytes());
        Self(digest.as_ref().try_into().expect("32 bytes"))
    }
}

/// Not the name of a role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a role: write provider, gateway or operator")]
pub struct UnknownRole(String);

impl FromStr for TokenRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match Self::of_name(text) {
            Self::Unknown => Err(UnknownRole(text.to_owned())),
            role => Ok(role),
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

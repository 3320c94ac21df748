//! API keys of accounts. A key is shown once, at its creation; brokers and gateways only know its digest.
//!
//! A key has 256 random bits, so an unsalted, unstretched digest reveals nothing about it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use posthaste_serve::environment;
use ring::digest::{SHA256, digest};
use thiserror::Error;

use super::{GatewayId, Hex, KeyDigest};

/// Prefix of every key, for searches for leaked keys.
const PREFIX: &str = "pha_";

/// A secret API key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey(String);

/// The system has given no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot get random bytes from the system: {0}")]
pub struct KeyError(rustix::io::Errno);

impl AccountKey {
    /// Makes a key of 32 random bytes.
    pub fn make() -> Result<Self, KeyError> {
        Ok(Self(format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode(random::<32>()?)
        )))
    }

    /// The key, to show once.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Digest of the key.
    pub fn digest(&self) -> KeyDigest {
        let digest = digest(&SHA256, self.0.as_bytes());
        Hex(digest.as_ref().try_into().expect("32 bytes"))
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(secret)")
    }
}

impl GatewayId {
    /// Makes a random identity.
    pub fn make() -> Result<Self, KeyError> {
        random().map(Self)
    }
}

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    environment::random("account keys").map_err(KeyError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_another_and_its_digest_is_sha_256_of_its_text() {
        let (one, two) = (AccountKey::make().unwrap(), AccountKey::make().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.secret().len(), PREFIX.len() + 43);
        assert!(!format!("{one:?}").contains(&one.secret()[PREFIX.len()..]));
        // FIPS 180-4, example of one block.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(AccountKey("abc".to_owned()).digest().to_string(), known);
    }
}

//! Keys of NATS users, which sign the challenge of a server: the functions of the crate `nkeys` that async-nats uses.
//!
//! The crate of that name brings sixteen packages, with a second implementation of Ed25519 and of SHA-2. This one takes
//! both from ring, which rustls has in any case.
//!
//! A key is written as base32 of its kind, its 32 bytes and a checksum. The kind takes one byte, and two in a seed.

use data_encoding::BASE32_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use thiserror::Error;

/// Kind of every seed, in the upper five bits of the first byte.
const SEED: u8 = 18 << 3;

/// A key that signs, with its public key.
pub struct KeyPair {
    kind: u8,
    key: Ed25519KeyPair,
}

/// A text that is not the seed of a key. It is secret and not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SeedError {
    /// Other characters, or a checksum that does not match.
    #[error("the seed of the key is damaged: copy the whole line below BEGIN USER NKEY SEED")]
    Damaged,
    /// Another kind of key.
    #[error("the key is not a seed: a seed begins with S")]
    NoSeed,
}

impl KeyPair {
    /// Reads a seed such as `SUA...`.
    pub fn from_seed(seed: &str) -> Result<Self, SeedError> {
        let bytes = BASE32_NOPAD.decode(seed.as_bytes());
        let bytes = bytes.map_err(|_| SeedError::Damaged)?;
        let (bytes, sum) = bytes.split_last_chunk().ok_or(SeedError::Damaged)?;
        if u16::from_le_bytes(*sum) != checksum(bytes) {
            return Err(SeedError::Damaged);
        }
        let ([first, second], secret) = bytes.split_first_chunk().ok_or(SeedError::Damaged)?;
        if first & 0xf8 != SEED {
            return Err(SeedError::NoSeed);
        }
        Ok(Self {
            kind: first << 5 | second >> 3,
            key: Ed25519KeyPair::from_seed_unchecked(secret).map_err(|_| SeedError::Damaged)?,
        })
    }

    /// The public key, such as `U...`.
    pub fn public_key(&self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend(self.key.public_key().as_ref());
        bytes.extend(checksum(&bytes).to_le_bytes());
        BASE32_NOPAD.encode(&bytes)
    }

    /// The Ed25519 signature of a challenge. It cannot fail; async-nats expects that it can.
    pub fn sign(&self, challenge: &[u8]) -> Result<Vec<u8>, SeedError> {
        Ok(self.key.sign(challenge).as_ref().to_vec())
    }
}

/// CRC-16 of XMODEM: polynomial 0x1021, initially 0.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        let sum = sum ^ u16::from(*byte) << 8;
        (0..8).fold(sum, |sum, _| match sum & 0x8000 {
            0 => sum << 1,
            _ => sum << 1 ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2, as a user's seed.
    const USER: &str = "SUAEZTIITMUP7FW2TW3MGRXMCFHA6W4KGGPTLK5GETNIZ5XNJ64KN63OVI";

    #[test]
    fn the_checksum_is_that_of_xmodem() {
        assert_eq!(checksum(b"123456789"), 0x31c3);
    }

    #[test]
    fn a_seed_has_its_public_key_and_signatures() {
        let user = KeyPair::from_seed(USER).unwrap();
        assert_eq!(
            user.public_key(),
            "UA6UAF6D5BBYSWUSW4FKOTI3P26JZGBMZ4XMJFUMYDGVL4JK6RTAYUDN"
        );
        let signature: String = user
            .sign(&[0x72])
            .unwrap()
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        assert_eq!(
            signature,
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
    }

    /// From the tests of the crate nkeys 0.4.5.
    #[test]
    fn an_account_has_another_kind() {
        let seed = "SAAPN4W3EG6KCJGUQTKTJ5GSB5NHK5CHAJL4DBGFUM3HHROI4XUEP4OBK4";
        let account = KeyPair::from_seed(seed).unwrap();
        assert_eq!(
            account.public_key(),
            "ACODERUVFFAWZQDSS6SBIACUA5O6SXF7HJ3YTYXBALHZP3P7R4BUO4J2"
        );
    }

    #[test]
    fn other_texts_are_no_seeds() {
        let public = KeyPair::from_seed(USER).unwrap().public_key();
        assert_eq!(KeyPair::from_seed(&public).err(), Some(SeedError::NoSeed));
        for end in 0..USER.len() {
            assert_eq!(
                KeyPair::from_seed(&USER[..end]).err(),
                Some(SeedError::Damaged)
            );
        }
        let damaged = USER.replacen('Z', "Y", 1);
        assert_eq!(KeyPair::from_seed(&damaged).err(), Some(SeedError::Damaged));
        assert_eq!(
            KeyPair::from_seed(&format!("{USER}A")).err(),
            Some(SeedError::Damaged)
        );
    }
}

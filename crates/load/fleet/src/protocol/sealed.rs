//! Sealed files: AES-256-GCM in chunks, so that a store or a stream of NATS never holds a secret.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | salt, random for each file |
//! | up to 64 KiB + 16 | chunk: ciphertext and tag; all but the last have exactly 64 KiB of content |
//!
//! The key of a file is derived from the key of the command, the salt and the file's name (HKDF-SHA256), because
//! several files of one command must never share a nonce. The nonce is the chunk's number and a mark of the last chunk,
//! as in the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015): truncated, reordered, exchanged or extended
//! files are errors. Content is returned only after its chunk was verified; the file is whole only after
//! [`Opener::finish`].

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Content of a chunk.
pub const CHUNK: usize = 64 << 10;

/// Length of the salt.
pub const SALT: usize = 16;

/// Length of a chunk's tag.
const TAG: usize = 16;

/// Length of the key.
const KEY: usize = 32;

/// Purpose of derived keys.
const PURPOSE: &[u8] = b"posthaste sealed file 1";

/// Key of the files of one command. It travels in requests only, is never stored, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; KEY]);

/// A sealed file that is not what was sealed: damaged, cut, exchanged, or of another key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the sealed file is damaged, incomplete, or of another command")]
pub struct UnsealError;

/// Seals content that arrives in pieces.
#[derive(Debug)]
pub struct Sealer {
    chunks: ChunkCipher,
    /// At most one chunk.
    pending: Vec<u8>,
}

/// Opens a sealed file that arrives in pieces.
#[derive(Debug)]
pub struct Opener {
    key: SealingKey,
    name: String,
    chunks: Option<ChunkCipher>,
    /// The salt, later at most one sealed chunk.
    pending: Vec<u8>,
}

/// The cipher of the next chunk.
#[derive(Debug)]
struct ChunkCipher {
    key: LessSafeKey,
    number: u64,
}

impl SealingKey {
    /// A random key.
    pub fn random() -> Self {
        Self(crate::machine::random::bytes())
    }

    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }
}

impl Sealer {
    /// Starts a file with a random salt. Appends its start to `out`.
    pub fn new(key: &SealingKey, name: &str, out: &mut Vec<u8>) -> Self {
        Self::with_salt(key, name, crate::machine::random::bytes(), out)
    }

    /// Starts a file with this salt. The same salt, name and key must never be used for different content.
    pub fn with_salt(key: &SealingKey, name: &str, salt: [u8; SALT], out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&salt);
        Self {
            chunks: ChunkCipher::new(key, name, &salt),
            pending: Vec::new(),
        }
    }

    /// Adds content. Appends complete chunks to `out`.
    pub fn push(&mut self, mut content: &[u8], out: &mut Vec<u8>) {
        while !content.is_empty() {
            // A full chunk waits for more content, because the last chunk is marked.
            if self.pending.len() == CHUNK {
                self.chunks.seal(&mut self.pending, false, out);
            }
            let (taken, rest) = content.split_at(content.len().min(CHUNK - self.pending.len()));
            self.pending.extend_from_slice(taken);
            content = rest;
        }
    }

    /// Appends the last chunk to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.chunks.seal(&mut self.pending, true, out);
    }
}

impl Opener {
    /// Starts to open the file of this name.
    pub fn new(key: &SealingKey, name: &str) -> Self {
        Self {
            key: key.clone(),
            name: name.to_owned(),
            chunks: None,
            pending: Vec::new(),
        }
    }

    /// Adds bytes of the sealed file. Appends verified content to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), UnsealError> {
        while !bytes.is_empty() {
            let most = match &mut self.chunks {
                None => SALT,
                Some(chunks) if self.pending.len() == CHUNK + TAG => {
                    chunks.open(&mut self.pending, false, out)?;
                    CHUNK + TAG
                }
                Some(_) => CHUNK + TAG,
            };
            debug_assert!(self.pending.len() < most, "there is room for a byte");
            let (taken, rest) = bytes.split_at(bytes.len().min(most - self.pending.len()));
            self.pending.extend_from_slice(taken);
            bytes = rest;
            if self.chunks.is_none() && self.pending.len() == SALT {
                self.chunks = Some(ChunkCipher::new(&self.key, &self.name, &self.pending));
                self.pending.clear();
            }
        }
        Ok(())
    }

    /// Verifies that the file is complete. Appends the rest of the content to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), UnsealError> {
        let mut chunks = self.chunks.take().ok_or(UnsealError)?;
        let is_first = chunks.number == 0;
        let before = out.len();
        chunks.open(&mut self.pending, true, out)?;
        // An empty last chunk has one form: the empty file.
        if out.len() == before && !is_first {
            return Err(UnsealError);
        }
        Ok(())
    }
}

impl ChunkCipher {
    fn new(key: &SealingKey, name: &str, salt: &[u8]) -> Self {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&key.0);
        let purpose = [PURPOSE, name.as_bytes()];
        let derived = secret.expand(&purpose, &AES_256_GCM);
        let derived = derived.expect("the key is shorter than HKDF's maximum");
        Self {
            key: LessSafeKey::new(UnboundKey::from(derived)),
            number: 0,
        }
    }

    fn next_nonce(&mut self, is_last: bool) -> Nonce {
        let mut nonce = [0; 12];
        nonce[3..11].copy_from_slice(&self.number.to_be_bytes());
        nonce[11] = is_last.into();
        self.number += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Moves sealed content to `out`.
    fn seal(&mut self, content: &mut Vec<u8>, is_last: bool, out: &mut Vec<u8>) {
        debug_assert!(
            content.len() <= CHUNK,
            "an opener takes chunks of this length at most"
        );
        let nonce = self.next_nonce(is_last);
        let sealed = self
            .key
            .seal_in_place_append_tag(nonce, Aad::empty(), content);
        sealed.expect("a chunk is shorter than AES-GCM's maximum");
        out.append(content);
    }

    /// Moves verified content to `out`.
    fn open(
        &mut self,
        sealed: &mut Vec<u8>,
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), UnsealError> {
        let nonce = self.next_nonce(is_last);
        let content = self.key.open_in_place(nonce, Aad::empty(), sealed);
        out.extend_from_slice(content.map_err(|_| UnsealError)?);
        sealed.clear();
        Ok(())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(..)")
    }
}

impl Serialize for SealingKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for SealingKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Never printed: an error must not repeat a key.
        read_key(&text).ok_or_else(|| D::Error::custom("the key is not 64 hexadecimal digits"))
    }
}

fn read_key(text: &str) -> Option<SealingKey> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * KEY || !text.bytes().all(is_digit) {
        return None;
    }
    let mut key = [0; KEY];
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(SealingKey(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second form of a file: its last chunk is full and not marked, and an empty marked one follows.
    #[test]
    fn an_empty_last_chunk_after_others_is_refused() {
        let (key, salt) = (SealingKey::from_bytes([1; KEY]), [2; SALT]);
        let mut sealed = salt.to_vec();
        let mut chunks = ChunkCipher::new(&key, "a", &salt);
        chunks.seal(&mut vec![3; CHUNK], false, &mut sealed);
        chunks.seal(&mut Vec::new(), true, &mut sealed);
        let (mut opener, mut content) = (Opener::new(&key, "a"), Vec::new());
        opener.push(&sealed, &mut content).unwrap();
        assert_eq!(opener.finish(&mut content), Err(UnsealError));
    }

    /// A chunk in the middle that is shorter than the others.
    #[test]
    fn a_short_chunk_before_the_last_is_refused() {
        let (key, salt) = (SealingKey::from_bytes([1; KEY]), [2; SALT]);
        let mut sealed = salt.to_vec();
        let mut chunks = ChunkCipher::new(&key, "a", &salt);
        chunks.seal(&mut vec![3; 9], false, &mut sealed);
        chunks.seal(&mut vec![3; 9], true, &mut sealed);
        let (mut opener, mut content) = (Opener::new(&key, "a"), Vec::new());
        let pushed = opener.push(&sealed, &mut content);
        assert_eq!(
            pushed.and_then(|()| opener.finish(&mut content)),
            Err(UnsealError)
        );
        assert!(content.is_empty());
    }
}

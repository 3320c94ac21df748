//! Sealed files: every change is found.

use posthaste_fleet::sealed::{CHUNK, Opener, SALT, Sealer, SealingKey, UnsealError};
use proptest::prelude::*;

const NAME: &str = "rows.csv";

/// A sealed chunk of full length.
const SEALED_CHUNK: usize = CHUNK + 16;

fn key() -> SealingKey {
    SealingKey::from_bytes([7; 32])
}

fn seal(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sealer = Sealer::new(&key(), NAME, &mut out);
    sealer.push(content, &mut out);
    sealer.finish(&mut out);
    out
}

fn open(sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
    open_with(&key(), NAME, sealed)
}

fn open_with(key: &SealingKey, name: &str, sealed: &[u8]) -> Result<Vec<u8>, UnsealError> {
    let mut out = Vec::new();
    let mut opener = Opener::new(key, name);
    opener.push(sealed, &mut out)?;
    opener.finish(&mut out)?;
    Ok(out)
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn files_of_every_length_around_a_chunk_are_opened() {
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5] {
        let content = content(length);
        let sealed = seal(&content);
        let chunks = length.div_ceil(CHUNK).max(1);
        assert_eq!(sealed.len(), SALT + length + 16 * chunks);
        assert_eq!(open(&sealed), Ok(content), "{length}");
    }
}

#[test]
fn truncated_files_are_refused() {
    let sealed = seal(&content(2 * CHUNK + 100));
    let ends = (0..40).chain([
        SALT + SEALED_CHUNK,
        SALT + 2 * SEALED_CHUNK,
        sealed.len() - 1,
    ]);
    for end in ends {
        assert_eq!(open(&sealed[..end]), Err(UnsealError), "{end}");
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for length in [0, 5, CHUNK] {
        let sealed = seal(&content(length));
        for more in [&[0][..], &[0; 16], &sealed[SALT..]] {
            assert_eq!(
                open(&[&*sealed, more].concat()),
                Err(UnsealError),
                "{length}"
            );
        }
    }
}

#[test]
fn reordered_and_repeated_chunks_are_refused() {
    let sealed = seal(&content(3 * CHUNK));
    let (salt, chunks) = sealed.split_at(SALT);
    let chunk = |index: usize| &chunks[index * SEALED_CHUNK..(index + 1) * SEALED_CHUNK];
    let built = |order: &[usize]| {
        let chunks: Vec<u8> = order
            .iter()
            .flat_map(|index| chunk(*index))
            .copied()
            .collect();
        [salt, &chunks].concat()
    };
    assert!(open(&built(&[0, 1, 2])).is_ok());
    for order in [
        &[1, 0, 2][..],
        &[0, 2],
        &[2],
        &[0, 0, 2],
        &[0, 1, 1, 2],
        &[0, 1],
    ] {
        assert_eq!(open(&built(order)), Err(UnsealError), "{order:?}");
    }
}

#[test]
fn the_wrong_key_and_the_wrong_name_are_refused() {
    let sealed = seal(b"secret");
    let other = SealingKey::from_bytes([8; 32]);
    assert_eq!(open_with(&other, NAME, &sealed), Err(UnsealError));
    assert_eq!(open_with(&key(), "other.csv", &sealed), Err(UnsealError));
}

#[test]
fn two_files_of_one_key_share_no_ciphertext() {
    let (one, two) = (seal(b"the same content"), seal(b"the same content"));
    assert_ne!(one[SALT..], two[SALT..]);
    assert!(!one.windows(8).any(|bytes| bytes == b"the same"));
    let sealed_as = |name: &str| {
        let mut out = Vec::new();
        Sealer::with_salt(&key(), name, [0; SALT], &mut out).finish(&mut out);
        out
    };
    assert_ne!(sealed_as("a"), sealed_as("b"));
}

#[test]
fn no_content_comes_from_a_damaged_chunk() {
    let mut sealed = seal(&content(2 * CHUNK));
    sealed[SALT + SEALED_CHUNK + 9] ^= 1;
    let mut out = Vec::new();
    let mut opener = Opener::new(&key(), NAME);
    let pushed = opener.push(&sealed, &mut out);
    let done = pushed.and_then(|()| opener.finish(&mut out));
    assert_eq!(done, Err(UnsealError));
    assert_eq!(out, content(CHUNK));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn pieces_change_nothing(
        length in 0..3 * CHUNK,
        cuts in prop::collection::vec(1..2 * CHUNK, 0..8),
    ) {
        let content = content(length);
        let pieces = |bytes: &[u8]| {
            let mut rest = bytes.to_vec();
            let mut pieces = Vec::new();
            for cut in &cuts {
                let after = rest.split_off((*cut).min(rest.len()));
                pieces.push(std::mem::replace(&mut rest, after));
            }
            pieces.push(rest);
            pieces
        };
        let mut sealed = Vec::new();
        let mut sealer = Sealer::with_salt(&key(), NAME, [3; SALT], &mut sealed);
        for piece in pieces(&content) {
            sealer.push(&piece, &mut sealed);
        }
        sealer.finish(&mut sealed);
        let mut whole = Vec::new();
        let mut sealer = Sealer::with_salt(&key(), NAME, [3; SALT], &mut whole);
        sealer.push(&content, &mut whole);
        sealer.finish(&mut whole);
        prop_assert_eq!(&sealed, &whole);
        let mut out = Vec::new();
        let mut opener = Opener::new(&key(), NAME);
        for piece in pieces(&sealed) {
            opener.push(&piece, &mut out).unwrap();
        }
        opener.finish(&mut out).unwrap();
        prop_assert_eq!(out, content);
    }

    #[test]
    fn every_flipped_bit_is_found(length in 0usize..300, at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut sealed = seal(&content(length));
        let at = at.index(sealed.len());
        sealed[at] ^= 1u8 << bit;
        prop_assert_eq!(open(&sealed), Err(UnsealError));
    }
}

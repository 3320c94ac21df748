//! Sealed files: a file has one sealed form for a salt, so whatever opens is what was sealed. Cuts change nothing.

use posthaste_fleet::sealed::{Opener, SALT, Sealer, SealingKey, UnsealError};

use crate::cuts::Cut;
use crate::within;

/// Name of the file.
const NAME: &str = "file";

/// Bytes that may be allocated for each byte: growing vectors of the input and of the content.
const PER_BYTE: usize = 8;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 16 << 10;

/// Cuts, and a sealed file under a known key; then the same bytes as content.
pub fn sealed(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let whole = within("Opener", cut.stream.len(), PER_BYTE, FIXED, || {
        open([cut.stream].into_iter())
    });
    assert_eq!(open(cut.pieces()), whole);
    if let Ok(content) = &whole {
        let salt = cut.stream[..SALT].try_into().expect("it has this length");
        assert_eq!(seal([&**content].into_iter(), salt), cut.stream);
    }
    let sealed = seal(cut.pieces(), [5; SALT]);
    assert_eq!(seal([cut.stream].into_iter(), [5; SALT]), sealed);
    assert_eq!(open([&*sealed].into_iter()).as_deref(), Ok(cut.stream));
    let shorter = &sealed[..sealed.len() - 1];
    assert_eq!(open([shorter].into_iter()), Err(UnsealError));
}

fn key() -> SealingKey {
    SealingKey::from_bytes([9; 32])
}

fn open<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Vec<u8>, UnsealError> {
    let mut content = Vec::new();
    let mut opener = Opener::new(&key(), NAME);
    for piece in pieces {
        opener.push(piece, &mut content)?;
    }
    opener.finish(&mut content)?;
    Ok(content)
}

fn seal<'a>(pieces: impl Iterator<Item = &'a [u8]>, salt: [u8; SALT]) -> Vec<u8> {
    let mut sealed = Vec::new();
    let mut sealer = Sealer::with_salt(&key(), NAME, salt, &mut sealed);
    for piece in pieces {
        sealer.push(piece, &mut sealed);
    }
    sealer.finish(&mut sealed);
    sealed
}

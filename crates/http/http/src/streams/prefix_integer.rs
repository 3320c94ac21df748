//! Integers with a prefix (RFC 7541, section 5.1; RFC 9204, section 4.1.1).

use thiserror::Error;

/// Most bytes after the prefix. Four hold 28 bits, and the fifth rejects what exceeds 32 bits.
const MAX_BYTES: usize = 5;

/// An integer or a string that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum PrefixError {
    /// The input ends before it.
    #[error("cut")]
    Cut,
    /// An integer beyond 32 bits.
    #[error("integer too large")]
    Integer,
    /// A string beyond its limit.
    #[error("string too long")]
    String,
    /// A string with an invalid Huffman code.
    #[error("invalid Huffman code")]
    Huffman,
}

/// Appends `value`. `pattern` has the bits above a prefix of `prefix` bits.
#[inline]
pub(crate) fn encode(pattern: u8, prefix: u32, value: usize, bytes: &mut Vec<u8>) {
    let full = (1usize << prefix) - 1;
    if value < full {
        bytes.push(pattern | value as u8);
        return;
    }
    bytes.push(pattern | full as u8);
    encode_rest(value - full, bytes);
}

/// Appends the part of a value beyond its prefix.
fn encode_rest(mut rest: usize, bytes: &mut Vec<u8>) {
    while rest >= 0x80 {
        bytes.push(0x80 | rest as u8 & 0x7f);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Reads an integer whose first byte has a prefix of `prefix` bits, and removes it from `block`.
#[inline]
pub(crate) fn decode(block: &mut &[u8], prefix: u32) -> Result<usize, PrefixError> {
    let (first, rest) = block.split_first().ok_or(PrefixError::Cut)?;
    let full = ((1u16 << prefix) - 1) as u8;
    let value = first & full;
    if value < full {
        *block = rest;
        return Ok(usize::from(value));
    }
    *block = rest;
    decode_rest(value, block)
}

/// Reads the part of a value beyond its prefix, and adds the full prefix.
fn decode_rest(full: u8, block: &mut &[u8]) -> Result<usize, PrefixError> {
    let rest = *block;
    let mut value = u64::from(full);
    for (position, byte) in rest.iter().enumerate() {
        if position == MAX_BYTES {
            return Err(PrefixError::Integer);
        }
        value += u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            *block = &rest[position + 1..];
            let value = u32::try_from(value).map_err(|_| PrefixError::Integer)?;
            return Ok(value as usize);
        }
    }
    Err(if rest.len() > MAX_BYTES {
        PrefixError::Integer
    } else {
        PrefixError::Cut
    })
}

/// Bytes after the prefix of an integer of 62 bits.
const MAX_LONG_BYTES: usize = 9;

/// Removes an integer of up to 62 bits from `block`.
pub(crate) fn skip(block: &mut &[u8], prefix: u32) -> Result<(), PrefixError> {
    let (first, rest) = block.split_first().ok_or(PrefixError::Cut)?;
    let full = ((1u16 << prefix) - 1) as u8;
    *block = rest;
    if first & full < full {
        return Ok(());
    }
    match rest.iter().position(|byte| byte & 0x80 == 0) {
        Some(last @ 0..MAX_LONG_BYTES) => *block = &rest[last + 1..],
        None if rest.len() < MAX_LONG_BYTES => return Err(PrefixError::Cut),
        _ => return Err(PrefixError::Integer),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541, appendix C.1.
        for (prefix, value, bytes) in [
            (5, 10, &b"\x0a"[..]),
            (5, 1337, b"\x1f\x9a\x0a"),
            (8, 42, b"\x2a"),
        ] {
            let mut encoded = Vec::new();
            encode(0, prefix, value, &mut encoded);
            assert_eq!(encoded, bytes);
            assert_eq!(decode(&mut &encoded[..], prefix), Ok(value));
        }
    }

    #[test]
    fn integers_beyond_32_bits_are_rejected() {
        let value = |bytes: &[u8]| decode(&mut &bytes[..], 7);
        assert_eq!(value(b"\x7f\x80\xff\xff\xff\x0f"), Ok(u32::MAX as usize));
        assert_eq!(
            value(b"\x7f\x81\xff\xff\xff\x0f"),
            Err(PrefixError::Integer)
        );
        assert_eq!(
            value(b"\x7f\xff\xff\xff\xff\x7f"),
            Err(PrefixError::Integer)
        );
        assert_eq!(
            value(b"\x7f\x80\x80\x80\x80\x80\x00"),
            Err(PrefixError::Integer)
        );
        assert_eq!(value(b"\x7f\x80\x80"), Err(PrefixError::Cut));
        assert_eq!(value(b""), Err(PrefixError::Cut));
    }
}

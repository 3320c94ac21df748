//! Strings after a prefix, with the Huffman code or without (RFC 7541, section 5.2; RFC 9204, section 4.1.2).
//!
//! The bit above the prefix of the length is the flag of the Huffman code.

use crate::streams::huffman;
use crate::streams::prefix_integer::{self, PrefixError};

/// Longest name or value, in bytes. A longer one would exceed each limit of a field list.
const LIMIT: usize = 256 << 10;

/// Appends a string, with the Huffman code if that is shorter. `pattern` has the bits above the flag, and `prefix` is
/// the number of bits of the length.
pub(crate) fn encode(pattern: u8, prefix: u32, text: &[u8], bytes: &mut Vec<u8>) {
    let length = huffman::encoded_length(text);
    if length < text.len() {
        prefix_integer::encode(pattern | 1 << prefix, prefix, length, bytes);
        huffman::encode(text, bytes);
    } else {
        prefix_integer::encode(pattern, prefix, text.len(), bytes);
        bytes.extend_from_slice(text);
    }
}

/// Reads a string: a part of `block`, or decoded into `decoded`.
pub(crate) fn decode<'s, 'b: 's>(
    block: &mut &'b [u8],
    prefix: u32,
    decoded: &'s mut Vec<u8>,
) -> Result<&'s [u8], PrefixError> {
    let has_code = block.first().is_some_and(|first| first & 1 << prefix != 0);
    let length = prefix_integer::decode(block, prefix)?;
    if length > LIMIT {
        return Err(PrefixError::String);
    }
    let (text, rest) = block.split_at_checked(length).ok_or(PrefixError::Cut)?;
    *block = rest;
    if !has_code {
        return Ok(text);
    }
    decoded.clear();
    huffman::decode(text, decoded).map_err(|_| PrefixError::Huffman)?;
    Ok(decoded)
}

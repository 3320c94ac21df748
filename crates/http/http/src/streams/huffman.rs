//! The Huffman code of HPACK and QPACK (RFC 7541, section 5.2 and appendix B).
//!
//! Decoding takes four bits per step: the code's tree becomes a table with one row per inner node, built by the
//! compiler. The shortest code has five bits, so one step completes at most one byte.

use thiserror::Error;

/// Number of symbols: the bytes, and the end of the string (EOS).
const SYMBOLS: usize = 257;
/// Inner nodes of a binary tree with [`SYMBOLS`] leaves.
const NODES: usize = SYMBOLS - 1;
/// Longest padding of a string, in bits.
const PADDING: usize = 7;
/// Mark of a leaf in the tree; the rest of the number is the symbol.
const LEAF: u16 = 0x8000;

/// A Huffman string that is not the encoding of any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("invalid Huffman code")]
pub(crate) struct InvalidCode;

/// One step of decoding: four bits from a node of the tree.
#[derive(Clone, Copy)]
struct DecodeStep {
    /// The node after the step.
    node: u8,
    /// Completed symbol.
    symbol: u8,
    has_symbol: bool,
    /// A string may end after the step.
    may_end: bool,
    /// The bits contain EOS.
    invalid: bool,
}

/// Appends the bytes that `code` encodes.
pub(crate) fn decode(code: &[u8], bytes: &mut Vec<u8>) -> Result<(), InvalidCode> {
    // The shortest code has five bits.
    bytes.reserve(code.len() * 8 / 5 + 1);
    let (mut node, mut may_end) = (0u8, true);
    for byte in code {
        for nibble in [byte >> 4, byte & 15] {
            let step = &STEPS[usize::from(node)][usize::from(nibble)];
            if step.invalid {
                return Err(InvalidCode);
            }
            if step.has_symbol {
                bytes.push(step.symbol);
            }
            (node, may_end) = (step.node, step.may_end);
        }
    }
    if may_end { Ok(()) } else { Err(InvalidCode) }
}

/// Length of the encoding of `bytes`, in bytes.
pub(crate) fn encoded_length(bytes: &[u8]) -> usize {
    let bits = |byte: &u8| usize::from(CODES[usize::from(*byte)].1);
    bytes.iter().map(bits).sum::<usize>().div_ceil(8)
}

/// Appends the encoding of `bytes`.
pub(crate) fn encode(bytes: &[u8], code: &mut Vec<u8>) {
    let (mut pending, mut count) = (0u64, 0u32);
    for byte in bytes {
        let (bits, length) = CODES[usize::from(*byte)];
        pending = pending << length | u64::from(bits);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            code.push((pending >> count) as u8);
        }
    }
    if count > 0 {
        let filler = 8 - count;
        code.push((pending << filler) as u8 | ((1u16 << filler) - 1) as u8);
    }
}

static STEPS: [[DecodeStep; 16]; NODES] = steps();

/// The children of each inner node: [`LEAF`] with a symbol, or the number of a node. Node 0 is the root.
const fn tree() -> [[u16; 2]; NODES] {
    let mut nodes = [[0u16; 2]; NODES];
    let (mut used, mut symbol) = (1, 0);
    while symbol < SYMBOLS {
        let (code, length) = CODES[symbol];
        let (mut node, mut left) = (0, length);
        while left > 1 {
            left -= 1;
            let bit = (code >> left & 1) as usize;
            if nodes[node][bit] == 0 {
                nodes[node][bit] = used;
                used += 1;
            }
            node = nodes[node][bit] as usize;
        }
        nodes[node][(code & 1) as usize] = LEAF | symbol as u16;
        symbol += 1;
    }
    nodes
}

const fn steps() -> [[DecodeStep; 16]; NODES] {
    let nodes = tree();
    let may_end = padding_nodes(&nodes);
    let none = DecodeStep {
        node: 0,
        symbol: 0,
        has_symbol: false,
        may_end: false,
        invalid: false,
    };
    let mut steps = [[none; 16]; NODES];
    let mut from = 0;
    while from < NODES {
        let mut nibble = 0;
        while nibble < 16 {
            let step = &mut steps[from][nibble];
            let (mut node, mut left) = (from, 4);
            while left > 0 {
                left -= 1;
                let child = nodes[node][nibble >> left & 1];
                if child & LEAF == 0 {
                    node = child as usize;
                } else {
                    step.invalid |= child == LEAF | 256;
                    step.symbol = child as u8;
                    step.has_symbol = true;
                    node = 0;
                }
            }
            step.node = node as u8;
            step.may_end = may_end[node];
            nibble += 1;
        }
        from += 1;
    }
    steps
}

/// The nodes after which a string may end: the first bits of EOS, at most [`PADDING`] of them.
const fn padding_nodes(nodes: &[[u16; 2]; NODES]) -> [bool; NODES] {
    let mut may_end = [false; NODES];
    let (mut node, mut depth) = (0, 0);
    while depth <= PADDING {
        may_end[node] = true;
        node = nodes[node][1] as usize;
        depth += 1;
    }
    may_end
}

/// Code and its length in bits, for each byte and for EOS (RFC 7541, appendix B).
const CODES: [(u32, u8); SYMBOLS] = [
    (0x1ff8, 13),
    (0x7fffd8, 23),
    (0xfffffe2, 28),
    (0xfffffe3, 28),
    (0xfffffe4, 28),
    (0xfffffe5, 28),
    (0xfffffe6, 28),
    (0xfffffe7, 28),
    (0xfffffe8, 28),
    (0xffffea, 24),
    (0x3ffffffc, 30),
    (0xfffffe9, 28),
    (0xfffffea, 28),
    (0x3ffffffd, 30),
    (0xfffffeb, 28),
    (0xfffffec, 28),
    (0xfffffed, 28),
    (0xfffffee, 28),
    (0xfffffef, 28),
    (0xffffff0, 28),
    (0xffffff1, 28),
    (0xffffff2, 28),
    (0x3ffffffe, 30),
    (0xffffff3, 28),
    (0xffffff4, 28),
    (0xffffff5, 28),
    (0xffffff6, 28),
    (0xffffff7, 28),
    (0xffffff8, 28),
    (0xffffff9, 28),
    (0xffffffa, 28),
    (0xffffffb, 28),
    (0x14, 6),
    (0x3f8, 10),
    (0x3f9, 10),
    (0xffa, 12),
    (0x1ff9, 13),
    (0x15, 6),
    (0xf8, 8),
    (0x7fa, 11),
    (0x3fa, 10),
    (0x3fb, 10),
    (0xf9, 8),
    (0x7fb, 11),
    (0xfa, 8),
    (0x16, 6),
    (0x17, 6),
    (0x18, 6),
    (0x0, 5),
    (0x1, 5),
    (0x2, 5),
    (0x19, 6),
    (0x1a, 6),
    (0x1b, 6),
    (0x1c, 6),
    (0x1d, 6),
    (0x1e, 6),
    (0x1f, 6),
    (0x5c, 7),
    (0xfb, 8),
    (0x7ffc, 15),
    (0x20, 6),
    (0xffb, 12),
    (0x3fc, 10),
    (0x1ffa, 13),
    (0x21, 6),
    (0x5d, 7),
    (0x5e, 7),
    (0x5f, 7),
    (0x60, 7),
    (0x61, 7),
    (0x62, 7),
    (0x63, 7),
    (0x64, 7),
    (0x65, 7),
    (0x66, 7),
    (0x67, 7),
    (0x68, 7),
    (0x69, 7),
    (0x6a, 7),
    (0x6b, 7),
    (0x6c, 7),
    (0x6d, 7),
    (0x6e, 7),
    (0x6f, 7),
    (0x70, 7),
    (0x71, 7),
    (0x72, 7),
    (0xfc, 8),
    (0x73, 7),
    (0xfd, 8),
    (0x1ffb, 13),
    (0x7fff0, 19),
    (0x1ffc, 13),
    (0x3ffc, 14),
    (0x22, 6),
    (0x7ffd, 15),
    (0x3, 5),
    (0x23, 6),
    (0x4, 5),
    (0x24, 6),
    (0x5, 5),
    (0x25, 6),
    (0x26, 6),
    (0x27, 6),
    (0x6, 5),
    (0x74, 7),
    (0x75, 7),
    (0x28, 6),
    (0x29, 6),
    (0x2a, 6),
    (0x7, 5),
    (0x2b, 6),
    (0x76, 7),
    (0x2c, 6),
    (0x8, 5),
    (0x9, 5),
    (0x2d, 6),
    (0x77, 7),
    (0x78, 7),
    (0x79, 7),
    (0x7a, 7),
    (0x7b, 7),
    (0x7ffe, 15),
    (0x7fc, 11),
    (0x3ffd, 14),
    (0x1ffd, 13),
    (0xffffffc, 28),
    (0xfffe6, 20),
    (0x3fffd2, 22),
    (0xfffe7, 20),
    (0xfffe8, 20),
    (0x3fffd3, 22),
    (0x3fffd4, 22),
    (0x3fffd5, 22),
    (0x7fffd9, 23),
    (0x3fffd6, 22),
    (0x7fffda, 23),
    (0x7fffdb, 23),
    (0x7fffdc, 23),
    (0x7fffdd, 23),
    (0x7fffde, 23),
    (0xffffeb, 24),
    (0x7fffdf, 23),
    (0xffffec, 24),
    (0xffffed, 24),
    (0x3fffd7, 22),
    (0x7fffe0, 23),
    (0xffffee, 24),
    (0x7fffe1, 23),
    (0x7fffe2, 23),
    (0x7fffe3, 23),
    (0x7fffe4, 23),
    (0x1fffdc, 21),
    (0x3fffd8, 22),
    (0x7fffe5, 23),
    (0x3fffd9, 22),
    (0x7fffe6, 23),
    (0x7fffe7, 23),
    (0xffffef, 24),
    (0x3fffda, 22),
    (0x1fffdd, 21),
    (0xfffe9, 20),
    (0x3fffdb, 22),
    (0x3fffdc, 22),
    (0x7fffe8, 23),
    (0x7fffe9, 23),
    (0x1fffde, 21),
    (0x7fffea, 23),
    (0x3fffdd, 22),
    (0x3fffde, 22),
    (0xfffff0, 24),
    (0x1fffdf, 21),
    (0x3fffdf, 22),
    (0x7fffeb, 23),
    (0x7fffec, 23),
    (0x1fffe0, 21),
    (0x1fffe1, 21),
    (0x3fffe0, 22),
    (0x1fffe2, 21),
    (0x7fffed, 23),
    (0x3fffe1, 22),
    (0x7fffee, 23),
    (0x7fffef, 23),
    (0xfffea, 20),
    (0x3fffe2, 22),
    (0x3fffe3, 22),
    (0x3fffe4, 22),
    (0x7ffff0, 23),
    (0x3fffe5, 22),
    (0x3fffe6, 22),
    (0x7ffff1, 23),
    (0x3ffffe0, 26),
    (0x3ffffe1, 26),
    (0xfffeb, 20),
    (0x7fff1, 19),
    (0x3fffe7, 22),
    (0x7ffff2, 23),
    (0x3fffe8, 22),
    (0x1ffffec, 25),
    (0x3ffffe2, 26),
    (0x3ffffe3, 26),
    (0x3ffffe4, 26),
    (0x7ffffde, 27),
    (0x7ffffdf, 27),
    (0x3ffffe5, 26),
    (0xfffff1, 24),
    (0x1ffffed, 25),
    (0x7fff2, 19),
    (0x1fffe3, 21),
    (0x3ffffe6, 26),
    (0x7ffffe0, 27),
    (0x7ffffe1, 27),
    (0x3ffffe7, 26),
    (0x7ffffe2, 27),
    (0xfffff2, 24),
    (0x1fffe4, 21),
    (0x1fffe5, 21),
    (0x3ffffe8, 26),
    (0x3ffffe9, 26),
    (0xffffffd, 28),
    (0x7ffffe3, 27),
    (0x7ffffe4, 27),
    (0x7ffffe5, 27),
    (0xfffec, 20),
    (0xfffff3, 24),
    (0xfffed, 20),
    (0x1fffe6, 21),
    (0x3fffe9, 22),
    (0x1fffe7, 21),
    (0x1fffe8, 21),
    (0x7ffff3, 23),
    (0x3fffea, 22),
    (0x3fffeb, 22),
    (0x1ffffee, 25),
    (0x1ffffef, 25),
    (0xfffff4, 24),
    (0xfffff5, 24),
    (0x3ffffea, 26),
    (0x7ffff4, 23),
    (0x3ffffeb, 26),
    (0x7ffffe6, 27),
    (0x3ffffec, 26),
    (0x3ffffed, 26),
    (0x7ffffe7, 27),
    (0x7ffffe8, 27),
    (0x7ffffe9, 27),
    (0x7ffffea, 27),
    (0x7ffffeb, 27),
    (0xffffffe, 28),
    (0x7ffffec, 27),
    (0x7ffffed, 27),
    (0x7ffffee, 27),
    (0x7ffffef, 27),
    (0x7fffff0, 27),
    (0x3ffffee, 26),
    (0x3fffffff, 30),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: &[u8]) -> Result<Vec<u8>, InvalidCode> {
        let mut bytes = Vec::new();
        decode(code, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn every_pair_of_bytes_returns() {
        for first in 0..=255 {
            for second in 0..=255 {
                let mut code = Vec::new();
                encode(&[first, second], &mut code);
                assert_eq!(code.len(), encoded_length(&[first, second]));
                assert_eq!(decoded(&code), Ok(vec![first, second]));
            }
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 7541, appendix C.4.1.
        let code = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(decoded(code).unwrap(), b"www.example.com");
    }

    #[test]
    fn wrong_padding_and_eos_are_rejected() {
        // "0" is 00000: its padding has to be ones.
        assert_eq!(decoded(b"\x07").unwrap(), b"0");
        assert_eq!(decoded(b"\x00"), Err(InvalidCode));
        // Eight bits of padding, and EOS itself.
        assert_eq!(decoded(b"\x07\xff"), Err(InvalidCode));
        assert_eq!(decoded(b"\xff\xff\xff\xff"), Err(InvalidCode));
        assert_eq!(decoded(b"\xff"), Err(InvalidCode));
        assert_eq!(decoded(b"").unwrap(), b"");
    }
}

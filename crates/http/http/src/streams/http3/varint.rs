//! Integers of variable length: 1, 2, 4 or 8 bytes (RFC 9000, section 16).

/// The highest value.
pub const MAX: u64 = (1 << 62) - 1;

/// Appends `value` in its shortest form. Panics beyond [`MAX`].
pub fn encode(value: u64, bytes: &mut Vec<u8>) {
    assert!(value <= MAX, "an integer of 62 bits");
    let form = value.to_be_bytes();
    match value {
        0..0x40 => bytes.push(form[7]),
        0x40..0x4000 => bytes.extend_from_slice(&[form[6] | 0x40, form[7]]),
        0x4000..0x4000_0000 => {
            bytes.push(form[4] | 0x80);
            bytes.extend_from_slice(&form[5..]);
        }
        _ => {
            bytes.push(form[0] | 0xc0);
            bytes.extend_from_slice(&form[1..]);
        }
    }
}

/// Reads an integer from the beginning of `bytes`, and removes it. `None` if it is incomplete.
pub fn decode(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = length_of(first);
    let (form, rest) = bytes.split_at_checked(length)?;
    let value = form
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    *bytes = rest;
    Some(value & (MAX >> (62 - (8 * length - 2))))
}

/// Length of an integer by its first byte.
const fn length_of(first: u8) -> usize {
    1 << (first >> 6)
}

/// The received part of an integer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartialInteger {
    bytes: [u8; 8],
    length: u8,
}

impl PartialInteger {
    /// Takes bytes of `input` until the integer is complete. `None` if more are needed.
    pub(super) fn take(&mut self, input: &mut &[u8]) -> Option<u64> {
        if self.length == 0
            && let Some(value) = decode(input)
        {
            return Some(value);
        }
        while let Some((byte, rest)) = input.split_first() {
            self.bytes[usize::from(self.length)] = *byte;
            self.length += 1;
            *input = rest;
            if usize::from(self.length) == length_of(self.bytes[0]) {
                let value = decode(&mut &self.bytes[..usize::from(self.length)]);
                *self = Self::default();
                return value;
            }
        }
        None
    }

    /// True if no byte of an integer has arrived.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 9000, appendix A.1.
        for (bytes, value) in [
            (
                &b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..],
                151_288_809_941_952_652,
            ),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            let mut encoded = Vec::new();
            encode(value, &mut encoded);
            assert_eq!(encoded, bytes);
            let mut rest = bytes;
            assert_eq!(decode(&mut rest), Some(value));
            assert!(rest.is_empty());
            assert_eq!(decode(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(decode(&mut &b"\x40\x25"[..]), Some(37));
    }

    #[test]
    fn limits_of_each_length_return_also_byte_by_byte() {
        let limits = [0u64, 1 << 6, 1 << 14, 1 << 30, MAX];
        let values = limits
            .into_iter()
            .flat_map(|limit| [limit.saturating_sub(1), limit]);
        for value in values {
            let mut encoded = Vec::new();
            encode(value, &mut encoded);
            let mut partial = PartialInteger::default();
            let (last, before) = encoded.split_last().unwrap();
            for byte in before {
                assert_eq!(partial.take(&mut &[*byte][..]), None);
                assert!(!partial.is_empty());
            }
            let mut rest = &[*last, 7][..];
            assert_eq!(partial.take(&mut rest), Some(value));
            assert_eq!((rest, partial.is_empty()), (&[7][..], true));
        }
    }
}

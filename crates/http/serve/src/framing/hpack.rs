//! HPACK header blocks (RFC 7541), parsed only as far as needed to recognise pseudo-header fields.
//!
//! No string is decoded and no table is kept. Each field in the dynamic table is one bit: its name begins with a colon.
//! The last one entered has index 62, regardless of evictions; the decoder rejects an index beyond the rest. So 128
//! bits cover a table of 4,096 bytes, whose entries count for at least 32 bytes each.

/// The first index of the dynamic table.
const DYNAMIC: u32 = 62;

/// Fields of the static table whose names begin with a colon: indices from 1.
const STATIC_PSEUDO: u32 = 14;

/// A colon at the start of a Huffman-coded string: seven bits (RFC 7541, appendix B).
const HUFFMAN_COLON: u8 = 0x5c;

/// The header blocks of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocks {
    /// One bit per field in the dynamic table, the last one entered first.
    entered: u128,
    position: BlockPosition,
    /// The first field of the current block is a pseudo-header field; `None` until known.
    first: Option<bool>,
    /// The current field: a pseudo-header field, and entered into the table.
    is_pseudo: bool,
    enters: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum BlockPosition {
    /// Before a field.
    #[default]
    Field,
    /// In an integer longer than its first byte.
    Integer {
        part: FieldPart,
        value: u32,
        shift: u8,
    },
    NameLength,
    /// At the first byte of a name.
    Name {
        length: u32,
        is_huffman: bool,
    },
    ValueLength,
    /// In a string with `left` bytes remaining.
    String {
        left: u32,
        part: FieldPart,
    },
    /// After an error that the decoder rejects. Nothing further is known.
    Broken,
}

/// The purpose of an integer or string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldPart {
    Index,
    NameIndex,
    TableSize,
    Name { is_huffman: bool },
    Value,
}

impl Blocks {
    /// Starts a block.
    pub(super) fn begin(&mut self) {
        self.first = None;
        if !matches!(self.position, BlockPosition::Broken) {
            self.position = BlockPosition::Field;
        }
    }

    /// The first field of the current block is a pseudo-header field. `None` until known.
    pub(super) fn first(&self) -> Option<bool> {
        self.first
    }

    /// Processes the next bytes of the current block.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let [byte, rest @ ..] = bytes {
            if let BlockPosition::String { left, part } = self.position {
                let length = bytes.len().min(left as usize);
                bytes = &bytes[length..];
                self.string(left - length as u32, part);
                continue;
            }
            if matches!(self.position, BlockPosition::Broken) {
                return;
            }
            // A name's first byte is part of its string.
            if !matches!(self.position, BlockPosition::Name { .. }) {
                bytes = rest;
            }
            self.take(*byte);
        }
    }

    fn take(&mut self, byte: u8) {
        match self.position {
            BlockPosition::Field => self.field(byte),
            BlockPosition::Integer { part, value, shift } => {
                let more = u32::from(byte & 0x7f).checked_shl(shift.into());
                let value = more
                    .filter(|_| shift <= 21)
                    .and_then(|more| value.checked_add(more));
                match (value, byte & 0x80) {
                    (None, _) => self.position = BlockPosition::Broken,
                    (Some(value), 0) => self.integer(part, value),
                    (Some(value), _) => {
                        let shift = shift + 7;
                        self.position = BlockPosition::Integer { part, value, shift };
                    }
                }
            }
            BlockPosition::NameLength => {
                let is_huffman = byte & 0x80 != 0;
                self.prefixed(FieldPart::Name { is_huffman }, byte, 0x7f);
            }
            BlockPosition::Name { length, is_huffman } => {
                self.named(if is_huffman {
                    byte >> 1 == HUFFMAN_COLON
                } else {
                    byte == b':'
                });
                let part = FieldPart::Name { is_huffman };
                self.position = BlockPosition::String { left: length, part };
            }
            BlockPosition::ValueLength => self.prefixed(FieldPart::Value, byte, 0x7f),
            BlockPosition::String { .. } | BlockPosition::Broken => {}
        }
    }

    /// Processes the first byte of a field (RFC 7541, section 6).
    fn field(&mut self, byte: u8) {
        (self.enters, self.is_pseudo) = (false, false);
        match byte {
            0x80.. => self.prefixed(FieldPart::Index, byte, 0x7f),
            0x40.. => {
                self.enters = true;
                self.prefixed(FieldPart::NameIndex, byte, 0x3f);
            }
            0x20.. => self.prefixed(FieldPart::TableSize, byte, 0x1f),
            _ => self.prefixed(FieldPart::NameIndex, byte, 0x0f),
        }
    }

    /// Starts an integer in the bits of `mask`.
    fn prefixed(&mut self, part: FieldPart, byte: u8, mask: u8) {
        let value = u32::from(byte & mask);
        if byte & mask == mask {
            self.position = BlockPosition::Integer {
                part,
                value,
                shift: 0,
            };
        } else {
            self.integer(part, value);
        }
    }

    fn integer(&mut self, part: FieldPart, value: u32) {
        self.position = match part {
            FieldPart::Index => {
                self.named(self.is_pseudo(value));
                BlockPosition::Field
            }
            FieldPart::TableSize => BlockPosition::Field,
            FieldPart::NameIndex if value == 0 => BlockPosition::NameLength,
            FieldPart::NameIndex => {
                self.named(self.is_pseudo(value));
                BlockPosition::ValueLength
            }
            FieldPart::Name { .. } if value == 0 => {
                self.named(false);
                BlockPosition::ValueLength
            }
            FieldPart::Name { is_huffman } => BlockPosition::Name {
                length: value,
                is_huffman,
            },
            FieldPart::Value => return self.string(value, part),
        };
    }

    /// Continues a string with `left` bytes remaining.
    fn string(&mut self, left: u32, part: FieldPart) {
        self.position = match (left, part) {
            (0, FieldPart::Value) => {
                if self.enters {
                    self.entered = self.entered << 1 | u128::from(self.is_pseudo);
                }
                BlockPosition::Field
            }
            (0, _) => BlockPosition::ValueLength,
            (left, part) => BlockPosition::String { left, part },
        };
    }

    /// Records the kind of the current field.
    fn named(&mut self, is_pseudo: bool) {
        self.is_pseudo = is_pseudo;
        self.first = self.first.or(Some(is_pseudo));
    }

    fn is_pseudo(&self, index: u32) -> bool {
        match index.checked_sub(DYNAMIC) {
            Some(entry) => self
                .entered
                .checked_shr(entry)
                .is_some_and(|bits| bits & 1 == 1),
            None => (1..=STATIC_PSEUDO).contains(&index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if the first field of the last block is a pseudo-header field, tested in every segmentation.
    fn first(blocks: &[&[u8]]) -> Option<bool> {
        let feed = |piece: usize| {
            let mut all = Blocks::default();
            for block in blocks {
                all.begin();
                block.chunks(piece).for_each(|piece| all.feed(piece));
            }
            all.first()
        };
        let whole = feed(1000);
        assert!(
            [1, 2, 3].map(feed).iter().all(|pieces| *pieces == whole),
            "{blocks:?}"
        );
        whole
    }

    #[test]
    fn names_are_known_in_every_form() {
        for (block, wanted) in [
            (&b"\x82"[..], Some(true)),
            (b"\x8f", Some(false)),
            (b"\x3f\xe1\x1f\x82", Some(true)),
            (b"\x20\x20\x8f\x82", Some(false)),
            (b"\x04\x01/", Some(true)),
            (b"\x44\x01/", Some(true)),
            (b"\x0f\x03\x01x", Some(false)),
            (b"\x00\x05:path\x01/", Some(true)),
            (b"\x10\x01x\x00", Some(false)),
            (b"\x40\x84\xb9\x58\xd3\x3f\x01/", Some(true)),
            (b"\x40\x82\x94\xe7\x00", Some(false)),
            (b"\x00\x00\x00", Some(false)),
            (b"\x00\x05", None),
            (b"\x00", None),
            (b"", None),
        ] {
            assert_eq!(first(&[block]), wanted, "{block:x?}");
        }
    }

    #[test]
    fn entries_of_the_dynamic_table_are_remembered() {
        let authority = b"\x41\x01s\x40\x01x\x01y\x00\x01z\x01y";
        assert_eq!(first(&[authority, b"\xbe"]), Some(false));
        assert_eq!(first(&[authority, b"\xbf"]), Some(true));
        assert_eq!(first(&[authority, b"\x7f\x00\x01t", b"\xbe"]), Some(true));
        assert_eq!(first(&[authority, b"\x7e\x01t", b"\xbe"]), Some(false));
        // 62 + 65: an integer of two bytes.
        let many = [&b"\x41\x01s"[..], &b"\x40\x01x\x01y".repeat(65)].concat();
        assert_eq!(first(&[&many, b"\xff\x00"]), Some(true));
        assert_eq!(first(&[&many, b"\xfe"]), Some(false));
    }

    #[test]
    fn nothing_is_known_behind_what_is_broken() {
        let endless = [&b"\xff"[..], &b"\xff".repeat(9)].concat();
        assert_eq!(first(&[&endless]), None);
        assert_eq!(first(&[&endless, b"\x82"]), None);
    }
}

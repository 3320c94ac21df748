//! Bytes of rtnetlink messages: a header, a fixed part, and attributes that may nest (rtnetlink(7), netlink(7)).
//!
//! Only the few messages of the requests next to this file. Numbers are in the byte order of the machine.

use std::mem::size_of;

/// Bytes of the header of a message: length, kind, flags, sequence number and port.
const HEADER: usize = 16;

/// Bytes of the header of an attribute: length and kind.
const ATTRIBUTE: usize = 4;

/// A message under construction.
pub(super) struct NetlinkMessage(Vec<u8>);

impl NetlinkMessage {
    /// A message of this kind, for example `RTM_NEWLINK`, with its fixed part and no attributes.
    pub(super) fn new(kind: u32, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&narrow(kind).to_ne_bytes());
        bytes.extend(fixed);
        Self(bytes)
    }

    /// Appends an attribute.
    pub(super) fn put(&mut self, kind: u32, value: &[u8]) {
        self.nest(kind, |message| message.0.extend(value));
    }

    /// Appends an attribute with a number.
    pub(super) fn put_number(&mut self, kind: u32, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Appends an attribute with a text and a final zero.
    pub(super) fn put_text(&mut self, kind: u32, text: &str) {
        self.put(kind, &[text.as_bytes(), &[0]].concat());
    }

    /// Appends an attribute with the bytes that `fill` appends.
    pub(super) fn nest(&mut self, kind: u32, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0; ATTRIBUTE]);
        fill(self);
        let length = u16::try_from(self.0.len() - start).expect("attributes are short");
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&narrow(kind).to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends a fixed part inside an attribute.
    pub(super) fn extend(&mut self, fixed: &[u8]) {
        self.0.extend(fixed);
    }

    /// The complete message.
    pub(super) fn finish(mut self, flags: u32, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are short");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[6..8].copy_from_slice(&narrow(flags).to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Kinds and flags have 16 bits; the constants of the kernel's headers have more.
fn narrow(constant: u32) -> u16 {
    u16::try_from(constant).expect("a constant of rtnetlink")
}

/// The first message of an answer.
pub(super) struct NetlinkAnswer<'a> {
    pub(super) kind: u32,
    pub(super) sequence: u32,
    /// All after the header.
    pub(super) payload: &'a [u8],
}

impl<'a> NetlinkAnswer<'a> {
    /// Reads the header. None if the bytes are no complete message.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(number(bytes, 0)?).ok()?;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        Some(Self {
            kind: kind.into(),
            sequence: number(bytes, 8)?,
            payload: bytes.get(HEADER..length)?,
        })
    }

    /// The value of the first attribute of this kind behind a fixed part of `fixed` bytes.
    pub(super) fn attribute(&self, fixed: usize, kind: u32) -> Option<&'a [u8]> {
        let mut rest = self.payload.get(fixed..)?;
        loop {
            let length = u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?);
            let found = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
            let value = rest.get(ATTRIBUTE..length.into())?;
            if u32::from(found) == kind {
                return Some(value);
            }
            rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
        }
    }
}

/// The number at a place.
pub(super) fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + size_of::<u32>())?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

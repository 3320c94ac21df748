//! Frame headers (RFC 9113, section 4.1) and the numbers of frames (section 6).

use std::fmt;

/// Bytes before the first frame of a client (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame header, in bytes.
pub const HEAD_LENGTH: usize = 9;

/// Initial and smallest limit of a frame's payload, in bytes. Ours does not change.
pub const FRAME_LIMIT: usize = 16_384;

/// Frame types.
pub mod kind {
    /// Content.
    pub const DATA: u8 = 0;
    /// The beginning of a field block.
    pub const HEADERS: u8 = 1;
    /// Deprecated priority of a stream.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream by an error.
    pub const RST_STREAM: u8 = 3;
    /// Parameters of the sender.
    pub const SETTINGS: u8 = 4;
    /// A promise of server push.
    pub const PUSH_PROMISE: u8 = 5;
    /// A question whether the connection works.
    pub const PING: u8 = 6;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
    /// More bytes may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// The continuation of a field block.
    pub const CONTINUATION: u8 = 9;
}

/// Frame flags.
pub mod flag {
    /// Of SETTINGS and PING: an acknowledgement.
    pub const ACK: u8 = 0x1;
    /// Of DATA and HEADERS: the last frame of the sender on this stream.
    pub const END_STREAM: u8 = 0x1;
    /// Of HEADERS and CONTINUATION: the end of the field block.
    pub const END_HEADERS: u8 = 0x4;
    /// Of DATA and HEADERS: the payload has padding.
    pub const PADDED: u8 = 0x8;
    /// Of HEADERS: the payload has a priority.
    pub const PRIORITY: u8 = 0x20;
}

/// Identifier of a stream of this client: odd, from 1 to 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(super) u32);

impl StreamId {
    /// The highest identifier.
    pub(super) const MAX: u32 = (1 << 31) - 1;

    /// The stream with this number on the wire.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number on the wire.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(text)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Length of the payload, in bytes.
    pub length: u32,
    /// Frame type.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Stream identifier, or 0 for the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Reads a header.
    pub fn parse(bytes: &[u8; HEAD_LENGTH]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & StreamId::MAX,
        }
    }

    /// The bytes of the header.
    pub fn bytes(&self) -> [u8; HEAD_LENGTH] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    /// True if a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

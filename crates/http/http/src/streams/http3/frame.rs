//! Numbers of frames, streams and settings (RFC 9114, sections 6.2, 7.2 and 11.2), and identifiers of streams.

use std::fmt;

/// Frame types.
pub mod kind {
    /// Content.
    pub const DATA: u64 = 0x00;
    /// A field section.
    pub const HEADERS: u64 = 0x01;
    /// A server push is not wanted.
    pub const CANCEL_PUSH: u64 = 0x03;
    /// Parameters of the sender.
    pub const SETTINGS: u64 = 0x04;
    /// A promise of server push.
    pub const PUSH_PROMISE: u64 = 0x05;
    /// The end of the connection.
    pub const GOAWAY: u64 = 0x07;
    /// A limit of server push.
    pub const MAX_PUSH_ID: u64 = 0x0d;
    /// Types of HTTP/2 that HTTP/3 must not have: PRIORITY, PING, WINDOW_UPDATE and CONTINUATION.
    pub const OF_HTTP2: [u64; 4] = [0x02, 0x06, 0x08, 0x09];
}

/// Types of unidirectional streams.
pub mod stream {
    /// The control stream.
    pub const CONTROL: u64 = 0x00;
    /// A server push.
    pub const PUSH: u64 = 0x01;
    /// Instructions of the QPACK encoder.
    pub const QPACK_ENCODER: u64 = 0x02;
    /// Instructions of the QPACK decoder.
    pub const QPACK_DECODER: u64 = 0x03;
}

/// Identifiers of settings.
pub mod setting {
    /// Capacity of the dynamic table of QPACK, in bytes.
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    /// Maximum size of all fields of a section, in bytes.
    pub const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    /// Streams that may wait for entries of the dynamic table.
    pub const QPACK_BLOCKED_STREAMS: u64 = 0x07;
    /// Settings of HTTP/2 that HTTP/3 must not have.
    pub const OF_HTTP2: [u64; 5] = [0x00, 0x02, 0x03, 0x04, 0x05];
}

/// QUIC's identifier of a stream (RFC 9000, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

/// Initiator and direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// A request.
    ClientBidirectional,
    ServerBidirectional,
    ClientUnidirectional,
    ServerUnidirectional,
}

impl StreamId {
    /// Our control stream: the first unidirectional stream of the client.
    pub const CONTROL: Self = Self(2);

    /// The stream with this number on the wire.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number on the wire.
    pub const fn number(self) -> u64 {
        self.0
    }

    pub(super) const fn kind(self) -> StreamKind {
        match self.0 & 3 {
            0 => StreamKind::ClientBidirectional,
            1 => StreamKind::ServerBidirectional,
            2 => StreamKind::ClientUnidirectional,
            _ => StreamKind::ServerUnidirectional,
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(text)
    }
}

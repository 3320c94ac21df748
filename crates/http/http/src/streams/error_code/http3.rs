//! Error codes of HTTP/3 (RFC 9114, section 8.1) and QPACK (RFC 9204, section 6).

use std::fmt;

/// Error code of RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE: an integer of 62 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// No error.
    pub const H3_NO_ERROR: Self = Self(0x100);
    /// Violation of the protocol without a code of its own.
    pub const H3_GENERAL_PROTOCOL_ERROR: Self = Self(0x101);
    /// Internal error.
    pub const H3_INTERNAL_ERROR: Self = Self(0x102);
    /// A stream that the peer must not open.
    pub const H3_STREAM_CREATION_ERROR: Self = Self(0x103);
    /// The end of a stream that the connection needs.
    pub const H3_CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame that is not permitted in this state or on this stream.
    pub const H3_FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame of an invalid layout or size.
    pub const H3_FRAME_ERROR: Self = Self(0x106);
    /// The peer causes too much load.
    pub const H3_EXCESSIVE_LOAD: Self = Self(0x107);
    /// An invalid identifier of a stream or of a push.
    pub const H3_ID_ERROR: Self = Self(0x108);
    /// Invalid SETTINGS.
    pub const H3_SETTINGS_ERROR: Self = Self(0x109);
    /// The control stream does not begin with SETTINGS.
    pub const H3_MISSING_SETTINGS: Self = Self(0x10a);
    /// The server did not process the request.
    pub const H3_REQUEST_REJECTED: Self = Self(0x10b);
    /// The request or its reply is not needed any more.
    pub const H3_REQUEST_CANCELLED: Self = Self(0x10c);
    /// The stream of a request ended before the request.
    pub const H3_REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// A malformed message.
    pub const H3_MESSAGE_ERROR: Self = Self(0x10e);
    /// A CONNECT tunnel failed.
    pub const H3_CONNECT_ERROR: Self = Self(0x10f);
    /// HTTP/1.1 is required.
    pub const H3_VERSION_FALLBACK: Self = Self(0x110);
    /// A field section that cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    /// An invalid instruction on the encoder stream.
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// An invalid instruction on the decoder stream.
    pub const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);

    /// Name of a registered code.
    pub fn name(self) -> Option<&'static str> {
        self.position().map(|position| NAMES[position])
    }

    /// Position in [`NAMES`].
    pub(crate) fn position(self) -> Option<usize> {
        let position = match self.0 {
            0x100..=0x110 => self.0 - 0x100,
            0x200..=0x202 => self.0 - 0x200 + QPACK,
            _ => return None,
        };
        usize::try_from(position).ok()
    }
}

/// Position of the first code of QPACK.
const QPACK: u64 = 17;

/// Names of the registered codes, in ascending order.
pub(crate) const NAMES: [&str; 20] = [
    "H3_NO_ERROR",
    "H3_GENERAL_PROTOCOL_ERROR",
    "H3_INTERNAL_ERROR",
    "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM",
    "H3_FRAME_UNEXPECTED",
    "H3_FRAME_ERROR",
    "H3_EXCESSIVE_LOAD",
    "H3_ID_ERROR",
    "H3_SETTINGS_ERROR",
    "H3_MISSING_SETTINGS",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR",
    "H3_CONNECT_ERROR",
    "H3_VERSION_FALLBACK",
    "QPACK_DECOMPRESSION_FAILED",
    "QPACK_ENCODER_STREAM_ERROR",
    "QPACK_DECODER_STREAM_ERROR",
];

impl fmt::Display for ErrorCode {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => text.write_str(name),
            None => write!(text, "error code {:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_registered_code_has_its_name() {
        assert_eq!(ErrorCode(0x100).name(), Some("H3_NO_ERROR"));
        assert_eq!(
            ErrorCode::H3_REQUEST_CANCELLED.to_string(),
            "H3_REQUEST_CANCELLED"
        );
        assert_eq!(ErrorCode(0x110).name(), Some("H3_VERSION_FALLBACK"));
        assert_eq!(ErrorCode(0x200).name(), Some("QPACK_DECOMPRESSION_FAILED"));
        assert_eq!(ErrorCode(0x202).name(), NAMES.last().copied());
        for unknown in [0, 0xff, 0x111, 0x1ff, 0x203, u64::MAX] {
            assert_eq!(ErrorCode(unknown).name(), None);
        }
        assert_eq!(ErrorCode(0x21).to_string(), "error code 0x21");
    }
}

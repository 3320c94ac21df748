//! Error codes of HTTP/2 (RFC 9113, section 7).

use std::fmt;

/// Error code of RST_STREAM and GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error.
    pub const NO_ERROR: Self = Self(0);
    /// Violation of the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Internal error.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More bytes than the window permits.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// No acknowledgement of SETTINGS in time.
    pub const SETTINGS_TIMEOUT: Self = Self(4);
    /// A frame on a closed stream.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of invalid length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The server did not process the stream.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A field block that cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// A CONNECT tunnel failed.
    pub const CONNECT_ERROR: Self = Self(10);
    /// The peer causes too much load.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
    /// The TLS connection is not secure enough.
    pub const INADEQUATE_SECURITY: Self = Self(12);
    /// HTTP/1.1 is required.
    pub const HTTP_1_1_REQUIRED: Self = Self(13);

    /// Name of a registered code.
    pub fn name(self) -> Option<&'static str> {
        self.position().map(|position| NAMES[position])
    }

    /// Position in [`NAMES`].
    pub(crate) fn position(self) -> Option<usize> {
        let position = usize::try_from(self.0).ok();
        position.filter(|position| *position < NAMES.len())
    }
}

/// Names of the codes, from 0.
pub(crate) const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl fmt::Display for ErrorCode {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => text.write_str(name),
            None => write!(text, "error code {:#x}", self.0),
        }
    }
}

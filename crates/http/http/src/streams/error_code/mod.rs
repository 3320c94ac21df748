//! Error codes of streams and connections, of HTTP/2 and of HTTP/3.
//!
//! The versions have different registries. An event holds the code of its connection's version.

pub(crate) mod http2;
pub(crate) mod http3;

use std::fmt;

/// Error code of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamErrorCode {
    /// Code of RST_STREAM and GOAWAY of HTTP/2.
    Http2(http2::ErrorCode),
    /// Code of RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE of HTTP/3.
    Http3(http3::ErrorCode),
}

impl From<http2::ErrorCode> for StreamErrorCode {
    fn from(code: http2::ErrorCode) -> Self {
        Self::Http2(code)
    }
}

impl From<http3::ErrorCode> for StreamErrorCode {
    fn from(code: http3::ErrorCode) -> Self {
        Self::Http3(code)
    }
}

impl fmt::Display for StreamErrorCode {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http2(code) => code.fmt(text),
            Self::Http3(code) => code.fmt(text),
        }
    }
}

//! Errors of a connection and of a stream.

use thiserror::Error;

use crate::streams::error_code::http2::ErrorCode;
use crate::streams::head::{ReplyFault, ReplyFaultKind};

/// A violation by the server that ends the connection. The output then ends with a GOAWAY of this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{reason} ({code})")]
pub struct ConnectionError {
    /// Code of the GOAWAY.
    pub code: ErrorCode,
    /// The violation.
    pub reason: &'static str,
    /// Token of the open stream whose frame caused it. The other streams are not at fault.
    pub token: Option<u32>,
}

impl ConnectionError {
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            token: None,
        }
    }

    /// A violation of the protocol without a code of its own.
    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    /// A frame of invalid length.
    pub(super) const fn size(reason: &'static str) -> Self {
        Self::new(ErrorCode::FRAME_SIZE_ERROR, reason)
    }
}

/// A fault of one stream (RFC 9113, section 5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamFault {
    pub(super) code: ErrorCode,
    pub(super) reason: &'static str,
}

impl StreamFault {
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    /// A malformed message (RFC 9113, section 8.1.1).
    pub(super) const fn malformed(reason: &'static str) -> Self {
        Self::new(ErrorCode::PROTOCOL_ERROR, reason)
    }
}

impl From<ReplyFault> for StreamFault {
    fn from(fault: ReplyFault) -> Self {
        let code = match fault.kind {
            ReplyFaultKind::Malformed => ErrorCode::PROTOCOL_ERROR,
            ReplyFaultKind::Excessive => ErrorCode::ENHANCE_YOUR_CALM,
        };
        Self::new(code, fault.reason)
    }
}

//! Errors of a connection and of a stream.

use thiserror::Error;

use crate::streams::error_code::http3::ErrorCode;
use crate::streams::head::{ReplyFault, ReplyFaultKind};

/// A violation by the peer that ends the connection. The caller closes it with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{reason} ({code})")]
pub struct Http3Error {
    /// Code of the CONNECTION_CLOSE.
    pub code: ErrorCode,
    /// The violation.
    pub reason: &'static str,
    /// Token of the open stream whose bytes caused it. The other streams are not at fault.
    pub token: Option<u32>,
}

impl Http3Error {
    pub(super) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            token: None,
        }
    }

    /// A frame that is not permitted here.
    pub(super) const fn unexpected(reason: &'static str) -> Self {
        Self::new(ErrorCode::H3_FRAME_UNEXPECTED, reason)
    }

    /// A frame of an invalid layout.
    pub(super) const fn frame(reason: &'static str) -> Self {
        Self::new(ErrorCode::H3_FRAME_ERROR, reason)
    }
}

/// A fault of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamFault {
    pub(super) code: ErrorCode,
    pub(super) reason: &'static str,
}

impl From<ReplyFault> for StreamFault {
    fn from(fault: ReplyFault) -> Self {
        let code = match fault.kind {
            ReplyFaultKind::Malformed => ErrorCode::H3_MESSAGE_ERROR,
            ReplyFaultKind::Excessive => ErrorCode::H3_EXCESSIVE_LOAD,
        };
        Self {
            code,
            reason: fault.reason,
        }
    }
}

/// A fault of a stream, or of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveFault {
    Stream(StreamFault),
    Connection(Http3Error),
}

impl From<ReplyFault> for ReceiveFault {
    fn from(fault: ReplyFault) -> Self {
        Self::Stream(fault.into())
    }
}

impl From<Http3Error> for ReceiveFault {
    fn from(error: Http3Error) -> Self {
        Self::Connection(error)
    }
}

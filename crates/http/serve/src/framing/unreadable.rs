//! Ends of connections by errors: requests that the parser refuses, and clients that leave.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, ErrorKind};

use hyper::{StatusCode, Version};

use crate::framing::Reset;

/// A request that the parser refuses, so that no service gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRequest {
    /// HTTP/1.1 for every version 1.
    pub version: Version,
    /// Status of the reply, if there is one; otherwise 400.
    pub status: StatusCode,
    /// The client gets a reply with this status. A malformed request over HTTP/2 has none: its stream is reset, or its
    /// connection is closed.
    pub has_reply: bool,
    /// The error of the parser.
    pub reason: Cow<'static, str>,
}

/// The reason for the end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// The client has sent an unreadable request.
    Unreadable(UnreadableRequest),
    /// The client has violated the protocol within a request, or otherwise.
    Violation,
    /// The client has closed the connection within a request or a reply.
    Left,
    /// The body of a reply has failed.
    Service,
}

impl From<Reset> for UnreadableRequest {
    fn from(reset: Reset) -> Self {
        let (status, reason) = match reset {
            Reset::TooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the head of the request is too large",
            ),
            Reset::Malformed => (
                StatusCode::BAD_REQUEST,
                "the request is malformed: its stream is reset",
            ),
        };
        Self {
            version: Version::HTTP_2,
            status,
            has_reply: reset == Reset::TooLarge,
            reason: reason.into(),
        }
    }
}

impl ConnectionEnd {
    /// Returns the reason for the error of a connection of HTTP/1.
    pub(crate) fn of_http1(error: &hyper::Error) -> Self {
        if error.is_parse() && !error.is_parse_version_h2() {
            return Self::Unreadable(unreadable(error));
        }
        if error.is_user() || error.is_body_write_aborted() {
            return Self::Service;
        }
        let source = error.source().and_then(|source| source.downcast_ref());
        if error.is_incomplete_message() || source.is_some_and(is_left) {
            return Self::Left;
        }
        Self::Violation
    }

    /// Returns the reason for the error of a connection of HTTP/2.
    pub(crate) fn of_http2(error: &hyper::Error) -> Self {
        let source = error.source().and_then(|source| source.downcast_ref());
        let Some(error): Option<&h2::Error> = source else {
            return Self::Violation;
        };
        match error.get_io() {
            Some(error) if is_left(error) => Self::Left,
            None if error.is_remote() => Self::Left,
            None if error.is_library() => Self::Unreadable(UnreadableRequest {
                version: Version::HTTP_2,
                status: StatusCode::BAD_REQUEST,
                has_reply: false,
                reason: error.to_string().into(),
            }),
            _ => Self::Violation,
        }
    }
}

/// The request of an error of hyper's parser, with the status that hyper replies.
fn unreadable(error: &hyper::Error) -> UnreadableRequest {
    let reason = error.to_string();
    let status = if !error.is_parse_too_large() {
        StatusCode::BAD_REQUEST
    } else if reason.starts_with("URI") {
        StatusCode::URI_TOO_LONG
    } else {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    };
    UnreadableRequest {
        version: Version::HTTP_11,
        status,
        has_reply: true,
        reason: reason.into(),
    }
}

/// True for the errors of a socket whose other end is closed.
fn is_left(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::NotConnected
            | ErrorKind::TimedOut
            | ErrorKind::UnexpectedEof
    )
}

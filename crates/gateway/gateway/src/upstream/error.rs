//! Errors of requests to upstreams.

use std::error::Error;
use std::io;

use hyper::StatusCode;
use rustix::io::Errno;

use crate::error::Rejection;
use crate::request::error::BodyError;
use crate::request::field_syntax::FieldError;

/// Reason of a call that ends at its deadline.
pub(crate) const DEADLINE_PASSED: &str = "the deadline of the call (grpc-timeout) has passed";

/// Reasons for a missing or incomplete reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Every upstream of the route is excluded.
    #[error("no upstream is healthy")]
    NoneHealthy,
    /// No name of an upstream of the route has an address yet.
    #[error("the name of the upstream has no address yet")]
    Unresolved,
    /// The connection failed.
    #[error("the upstream cannot be connected to: {0}")]
    Connect(#[source] io::Error),
    /// The connection timed out.
    #[error("the upstream did not take the connection in time")]
    ConnectTimeout,
    /// The client's own error, which ended the exchange.
    #[error(transparent)]
    Client(BodyError),
    /// The HTTP/2 stream or connection broke. Not stated as the source: a server would reset the client's stream with
    /// the same reason, and some clients take NO_ERROR for the end.
    #[error("the upstream's reply is broken: {0}")]
    Http2(h2::Error),
    /// The head or the trailers of a reply have an invalid field.
    #[error("the upstream's reply is broken: {0}")]
    Field(#[from] FieldError),
    /// The upstream does not select HTTP/2 by ALPN.
    #[error(
        "the upstream does not select HTTP/2 (ALPN h2): enable HTTP/2 there, or set protocol = \"auto\" or \"http1\" for its route"
    )]
    NotHttp2,
    /// The Host field cannot be sent as `:authority`.
    #[error("the Host field is no authority, which HTTP/2 requires")]
    Authority,
    /// The connection broke, or its data is not HTTP.
    #[error("the upstream's reply is broken: {0}")]
    Broken(#[source] hyper::Error),
    /// The upstream closed a reused connection without a reply, and the request cannot be sent twice.
    #[error(
        "the upstream closed a kept connection without announcing it (Connection: close), and this request cannot be sent twice: {0}"
    )]
    Closed(#[source] hyper::Error),
    /// Status 101, which no request has asked for.
    #[error("the upstream switched protocols unasked")]
    Switched,
    /// The head of the reply timed out.
    #[error("the upstream did not reply in time")]
    ReplyTimeout,
    /// The client's deadline passed before the head of the reply.
    #[error("{DEADLINE_PASSED}")]
    Deadline,
    /// The reply could not be compressed.
    #[error("the reply could not be compressed: {0}")]
    Codec(#[source] io::Error),
    /// The body of the reply timed out.
    #[error("the upstream stopped in the middle of its reply")]
    Stalled,
}

impl UpstreamError {
    /// True if there was no address to send the request to.
    pub(super) fn is_exclusion(&self) -> bool {
        matches!(self, Self::NoneHealthy | Self::Unresolved)
    }

    /// True if the request could not be sent because of its client.
    pub(crate) fn is_of_client(&self) -> bool {
        matches!(self, Self::Authority) || self.of_client().is_some()
    }

    /// The client's error in the body of its request, if that ended the exchange.
    pub(crate) fn of_client(&self) -> Option<&BodyError> {
        match self {
            Self::Broken(error) => error.source()?.downcast_ref(),
            Self::Client(error) => Some(error),
            _ => None,
        }
    }

    /// True if the upstream closed the connection instead of replying.
    pub(super) fn is_close(&self) -> bool {
        let Self::Broken(error) = self else {
            return false;
        };
        let cause = error.source();
        error.is_incomplete_message() || cause.is_some_and(|cause| cause.is::<io::Error>())
    }

    /// True if the failure says nothing about the upstream: this process or machine lacks resources.
    pub(super) fn is_ours(&self) -> bool {
        let Self::Connect(error) = self else {
            return false;
        };
        let errno = Errno::from_io_error(error);
        let ours = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ADDRNOTAVAIL,
        ];
        errno.is_some_and(|errno| ours.contains(&errno))
    }

    /// True if the failure is no evidence against the endpoint: it is the client's or ours, the close of a kept
    /// connection that crossed the request, or a deadline that the client has chosen.
    pub(crate) fn says_nothing(&self) -> bool {
        let is_neutral = matches!(self, Self::Closed(_) | Self::Deadline);
        is_neutral || self.is_of_client() || self.is_ours()
    }

    /// Index of the kind in [`FAILURES`](crate::record::metrics::FAILURES).
    pub(crate) const fn kind(&self) -> usize {
        match self {
            Self::NoneHealthy => 0,
            Self::Connect(_) => 1,
            Self::ConnectTimeout => 2,
            // Errors of clients are not counted.
            Self::Broken(_)
            | Self::Http2(_)
            | Self::Field(_)
            | Self::Client(_)
            | Self::Authority => 3,
            Self::ReplyTimeout => 4,
            Self::Codec(_) => 5,
            Self::Stalled => 6,
            Self::Closed(_) => 7,
            Self::Switched => 8,
            Self::NotHttp2 => 9,
            Self::Deadline => 10,
            Self::Unresolved => 11,
        }
    }
}

/// True if this process or the machine has no descriptor left.
pub(super) fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

impl From<UpstreamError> for Rejection {
    fn from(error: UpstreamError) -> Self {
        let status = match &error {
            UpstreamError::NoneHealthy | UpstreamError::Unresolved => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            UpstreamError::Connect(_) => StatusCode::BAD_GATEWAY,
            UpstreamError::Codec(_) => StatusCode::INTERNAL_SERVER_ERROR,
            UpstreamError::ConnectTimeout
            | UpstreamError::ReplyTimeout
            | UpstreamError::Deadline
            | UpstreamError::Stalled => StatusCode::GATEWAY_TIMEOUT,
            UpstreamError::Authority => StatusCode::BAD_REQUEST,
            UpstreamError::Client(error) => error.status(),
            UpstreamError::Broken(_)
            | UpstreamError::Closed(_)
            | UpstreamError::Http2(_)
            | UpstreamError::Field(_)
            | UpstreamError::NotHttp2
            | UpstreamError::Switched => StatusCode::BAD_GATEWAY,
        };
        match error.of_client() {
            Some(cause) => Self::new(cause.status(), cause.to_string()),
            None => Self::new(status, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_http2_cannot_carry_is_the_fault_of_the_client() {
        let failure = UpstreamError::Authority;
        assert!(failure.says_nothing() && failure.is_of_client());
        assert_eq!(Rejection::from(failure).status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn exhausted_local_resources_are_not_failures_of_upstreams() {
        let failed = |errno: Errno| UpstreamError::Connect(errno.into());
        assert!(failed(Errno::MFILE).is_ours() && failed(Errno::ADDRNOTAVAIL).is_ours());
        assert!(!failed(Errno::CONNREFUSED).is_ours() && !UpstreamError::ConnectTimeout.is_ours());
    }
}

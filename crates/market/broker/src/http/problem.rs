//! Error replies: problem details (RFC 9457).

use std::time::Duration;

use hyper::{Method, StatusCode};

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProblemDetails {
    pub(super) status: StatusCode,
    /// Description for people: the error and the remedy.
    pub(super) detail: String,
    /// Header field that the status requires.
    pub(super) also: Option<Also>,
}

/// A header field that belongs to a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Also {
    /// Allow (RFC 9110, section 15.5.6).
    Allow(&'static str),
    /// WWW-Authenticate (RFC 6750, section 3).
    Authenticate(&'static str),
    /// Retry-After, in whole seconds.
    RetryAfter(Duration),
}

impl ProblemDetails {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            also: None,
        }
    }

    /// 400: the request cannot be parsed.
    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 422: the request is well-formed but invalid.
    pub(super) fn senseless(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn method(method: &Method, allowed: &'static str) -> Self {
        let detail = format!("{method} is not allowed here: use {allowed}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, detail).with(Also::Allow(allowed))
    }

    /// 503: the request may succeed later. Sends Retry-After: 1 s.
    pub(super) fn later(detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.with(Also::RetryAfter(Duration::from_secs(1)))
    }

    pub(super) fn with(mut self, also: Also) -> Self {
        self.also = Some(also);
        self
    }
}

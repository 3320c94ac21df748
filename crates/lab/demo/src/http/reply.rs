//! Replies, with the header fields that all of them share.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

/// Body of a reply.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Content security policy: only resources of this server, and no framing by other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An error reply.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    message: String,
    /// Allowed methods, if the method was wrong.
    allow: Option<&'static str>,
}

impl HttpRefusal {
    pub(super) const fn new(status: StatusCode, message: String) -> Self {
        Self {
            status,
            message,
            allow: None,
        }
    }

    /// The method is not one of `allowed` (RFC 9110, section 15.5.6).
    pub(super) fn method(allowed: &'static str) -> Self {
        Self {
            allow: Some(allowed),
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed}"))
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

impl From<HttpRefusal> for Response<Body> {
    fn from(refusal: HttpRefusal) -> Self {
        let mut reply = text("text/plain; charset=utf-8", refusal.message + "\n");
        *reply.status_mut() = refusal.status;
        if let Some(allowed) = refusal.allow {
            let allowed = HeaderValue::from_static(allowed);
            reply.headers_mut().insert(ALLOW, allowed);
        }
        reply
    }
}

/// A complete reply.
pub(super) fn text(kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    respond(kind, Full::new(body.into()).boxed_unsync())
}

/// A stream of events.
pub(super) fn events(body: Body) -> Response<Body> {
    respond("text/event-stream", body)
}

fn respond(kind: &'static str, body: Body) -> Response<Body> {
    let mut reply = Response::new(body);
    let fields = reply.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, POLICY),
    ] {
        fields.insert(name, HeaderValue::from_static(value));
    }
    reply
}

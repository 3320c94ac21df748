//! Replies, with what every one of them says to the browser.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

/// What a reply carries.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The page uses what this server has and nothing else, and stands in no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Why a request is not answered.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    words: String,
}

impl Refusal {
    pub(super) const fn new(status: StatusCode, words: String) -> Self {
        Self { status, words }
    }

    pub(super) fn words(&self) -> &str {
        &self.words
    }
}

impl From<Refusal> for Response<Body> {
    fn from(Refusal { status, words }: Refusal) -> Self {
        let mut reply = text("text/plain; charset=utf-8", words + "\n");
        *reply.status_mut() = status;
        reply
    }
}

/// Something whole.
pub(super) fn text(kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    of(kind, Full::new(body.into()).boxed_unsync())
}

/// Events as they come.
pub(super) fn events(body: Body) -> Response<Body> {
    of("text/event-stream", body)
}

fn of(kind: &'static str, body: Body) -> Response<Body> {
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

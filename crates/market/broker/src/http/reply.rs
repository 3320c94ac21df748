//! Replies before their conversion to HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::problem::{Also, ProblemDetails};
use super::stream::Events;

/// Body of a reply.
pub struct BrokerReplyBody(ReplyContent);

enum ReplyContent {
    /// A complete body.
    Whole(Full<Bytes>),
    /// A stream of events.
    Events(Events),
}

/// Status, body and header fields.
pub(super) struct BrokerReply {
    status: StatusCode,
    kind: &'static str,
    body: ReplyContent,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl BrokerReply {
    pub(super) fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            kind,
            body: ReplyContent::Whole(Full::new(body.into())),
            fields: Vec::new(),
        }
    }

    pub(super) fn json(body: impl Into<Bytes>) -> Self {
        Self::new(StatusCode::OK, "application/json", body)
    }

    /// JSON form of `value`, which must be serialisable.
    pub(super) fn serialized(value: &impl Serialize) -> Self {
        Self::json(serde_json::to_vec(value).expect("a reply has texts, numbers and keys of text"))
    }

    pub(super) fn events(events: Events) -> Self {
        let mut reply = Self::new(StatusCode::OK, "text/event-stream", Bytes::new());
        reply.body = ReplyContent::Events(events);
        reply.with(header::CACHE_CONTROL, "no-store")
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header field. `value` must be ASCII.
    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.fields.push((name, value));
        }
        self
    }

    /// Class of the status, as index of a counter: 0 for 2xx and others, 1 for 4xx, 2 for 5xx.
    pub(super) fn class(&self) -> usize {
        match self.status.as_u16() {
            400..500 => 1,
            500.. => 2,
            _ => 0,
        }
    }

    /// Converts to an HTTP response. `age` is the age of stale content, if it is stale (RFC 9111, section 5.1).
    pub(super) fn send(self, age: Option<Duration>) -> Response<BrokerReplyBody> {
        let mut response = Response::new(BrokerReplyBody(self.body));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        for (name, value) in self.fields {
            fields.insert(name, value);
        }
        if let Some(age) = age {
            fields.insert(header::AGE, HeaderValue::from(age.as_secs()));
        }
        response
    }
}

impl hyper::body::Body for BrokerReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            ReplyContent::Whole(body) => Pin::new(body).poll_frame(cx),
            ReplyContent::Events(events) => events.poll_next(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            ReplyContent::Whole(body) => body.is_end_stream(),
            ReplyContent::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ReplyContent::Whole(body) => body.size_hint(),
            ReplyContent::Events(_) => SizeHint::default(),
        }
    }
}

impl From<ProblemDetails> for BrokerReply {
    fn from(problem: ProblemDetails) -> Self {
        #[derive(Serialize)]
        struct Details<'a> {
            title: &'a str,
            status: u16,
            detail: &'a str,
        }
        let ProblemDetails {
            status,
            detail,
            also,
        } = problem;
        let title = status.canonical_reason().unwrap_or("Error");
        let details = Details {
            title,
            status: status.as_u16(),
            detail: &detail,
        };
        let body = serde_json::to_vec(&details).expect("texts and a number");
        let reply = Self::new(status, "application/problem+json", body);
        match also {
            None => reply,
            Some(Also::Allow(methods)) => reply.with(header::ALLOW, methods),
            Some(Also::Authenticate(challenge)) => reply.with(header::WWW_AUTHENTICATE, challenge),
            Some(Also::RetryAfter(time)) => {
                reply.with(header::RETRY_AFTER, &time.as_secs().to_string())
            }
        }
    }
}

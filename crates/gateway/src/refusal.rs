//! Error replies of the gateway itself, for requests that get no reply from an upstream.

use bytes::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use posthaste_soap::{Fault, Version, http};

use crate::body::{BodyError, ReplyBody};
use crate::site::Astray;
use crate::upstream::Failure;

/// A request that ends with an error reply.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Body of the reply.
    pub(crate) reason: String,
    kind: &'static str,
    /// Further fields of the reply.
    pub(crate) fields: Vec<(&'static str, String)>,
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            kind: TEXT,
            fields: Vec::new(),
        }
    }

    /// Creates an error reply with a SOAP fault.
    pub(crate) fn fault(version: Version, fault: &Fault) -> Self {
        let status = StatusCode::from_u16(fault.status(version));
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            reason: fault.envelope(version),
            kind: http::content_type(version),
            fields: Vec::new(),
        }
    }

    pub(crate) fn reply(self) -> Response<ReplyBody> {
        let mut reply = Response::new(ReplyBody::Whole(Bytes::from(self.reason + "\n")));
        *reply.status_mut() = self.status;
        let kind = HeaderValue::from_static(self.kind);
        reply.headers_mut().insert(CONTENT_TYPE, kind);
        // After an ambiguous request, the start of the next one is uncertain.
        if matches!(
            self.status,
            StatusCode::BAD_REQUEST | StatusCode::NOT_IMPLEMENTED
        ) {
            let close = HeaderValue::from_static("close");
            reply.headers_mut().insert(CONNECTION, close);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let second = HeaderValue::from_static("1");
            reply.headers_mut().insert(RETRY_AFTER, second);
        }
        for (name, value) in self.fields {
            // The callers only use valid field values.
            if let Ok(value) = HeaderValue::from_str(&value) {
                reply.headers_mut().insert(name, value);
            }
        }
        reply
    }
}

impl From<Astray> for Refusal {
    fn from(astray: Astray) -> Self {
        match astray {
            Astray::Nowhere => Self::new(StatusCode::NOT_FOUND, "no route leads there"),
            Astray::InDoubt => Self::new(
                StatusCode::BAD_REQUEST,
                "the path leads to different routes as it is written and in its normal form: send the normal form",
            ),
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match &failure {
            Failure::NoneHealthy => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Connect(_) => StatusCode::BAD_GATEWAY,
            Failure::Codec(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::ConnectTimeout | Failure::ReplyTimeout | Failure::Stalled => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Failure::Broken(_) | Failure::Closed(_) | Failure::Switched => StatusCode::BAD_GATEWAY,
        };
        match failure.of_client() {
            Some(error) => Self::new(error.status(), error.to_string()),
            None => Self::new(status, failure.to_string()),
        }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

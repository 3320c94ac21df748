//! Error replies of the gateway itself, for requests that get no reply from an upstream.

use bytes::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use posthaste_units::Span;

use super::body::ReplyBody;
use crate::error::Rejection;
use crate::retry_after::advice;

/// Makes the reply of a rejection.
pub(crate) fn reply(rejection: Rejection) -> Response<ReplyBody> {
    let mut reply = Response::new(ReplyBody::Whole(Bytes::from(rejection.reason + "\n")));
    *reply.status_mut() = rejection.status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(rejection.media));
    // After an ambiguous request, the start of the next one is uncertain.
    if matches!(
        rejection.status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_IMPLEMENTED
    ) {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if rejection.status == StatusCode::SERVICE_UNAVAILABLE {
        // Replaced if the rejection has an estimate.
        let advice = advice(Span::ZERO);
        headers.insert(RETRY_AFTER, advice.parse().expect("digits"));
    }
    for (name, value) in rejection.fields {
        // The callers only use valid field values.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    reply
}

//! Statuses of gRPC, and refusals as replies with a status only (Trailers-Only of gRPC over HTTP/2).

use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{HeaderMap, Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::error::Rejection;
use crate::response::body::ReplyBody;
use crate::response::rejection;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Characters of a `grpc-message` that are encoded. The encoder adds all beyond ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Names of the statuses 0 to 16 in counters, and of all others.
pub(crate) const STATUSES: [&str; 18] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
    "other",
];

/// Status of a call whose deadline has passed.
pub(super) const DEADLINE_EXCEEDED: u8 = 4;

/// The gRPC status of a refusal with this status of HTTP.
fn of_http(status: StatusCode) -> u8 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        402 | 413 | 429 => 8,
        403 => 7,
        404 | 501 => 12,
        502 | 503 => 14,
        504 => DEADLINE_EXCEEDED,
        _ => 2,
    }
}

/// The index in [`STATUSES`] of the status in a head or in trailers. `None` without one.
pub(super) fn index_of(fields: &HeaderMap) -> Option<usize> {
    let status = fields.get(STATUS)?.to_str().ok();
    let known = STATUSES.len() - 1;
    let index = status.and_then(|status| status.parse().ok());
    Some(index.filter(|index| *index < known).unwrap_or(known))
}

/// The fields of a status.
pub(super) fn fields(status: u8, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    add(&mut fields, status, message);
    fields
}

fn add(fields: &mut HeaderMap, status: u8, message: &str) {
    fields.insert(STATUS, HeaderValue::from(u16::from(status)));
    let message = utf8_percent_encode(message, ENCODED).to_string();
    // Never fails: all other characters are encoded.
    if let Ok(message) = HeaderValue::try_from(message) {
        fields.insert(MESSAGE, message);
    }
}

/// Makes the reply of a rejection to a call: the status is in the head, and there is no body.
pub(crate) fn refusal(rejection: Rejection) -> Response<ReplyBody> {
    let (status, message) = (of_http(rejection.status), rejection.reason.clone());
    let (head, _) = rejection::reply(rejection).into_parts();
    let mut reply = Response::new(ReplyBody::Whole(Bytes::new()));
    let mut headers = head.headers;
    headers.remove(CONNECTION);
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let seconds = headers.get(RETRY_AFTER);
    let seconds = seconds.and_then(|after| after.to_str().ok()?.parse::<u32>().ok());
    if let Some(seconds) = seconds {
        let millis = u64::from(seconds) * 1000;
        headers.insert(PUSHBACK, HeaderValue::from(millis));
    }
    add(&mut headers, status, &message);
    *reply.headers_mut() = headers;
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_status_without_a_body() {
        let mut rejection = Rejection::new(StatusCode::TOO_MANY_REQUESTS, "100 % b\u{fc}sy\n");
        rejection.fields.push(("retry-after", "3".to_owned()));
        let reply = refusal(rejection);
        assert_eq!(reply.status(), StatusCode::OK);
        let field = |name: &str| reply.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(field("content-type"), "application/grpc");
        assert_eq!(field("grpc-status"), "8");
        assert_eq!(field("grpc-message"), "100 %25 b%C3%BCsy%0A");
        assert_eq!(field("retry-after"), "3");
        assert_eq!(field("grpc-retry-pushback-ms"), "3000");
        assert!(hyper::body::Body::is_end_stream(reply.body()));
    }

    #[test]
    fn statuses_beyond_the_list_are_counted_together() {
        for (status, index) in [("0", 0), ("16", 16), ("17", 17), ("-1", 17), ("x", 17)] {
            let mut fields = HeaderMap::new();
            fields.insert(STATUS, HeaderValue::from_static(status));
            assert_eq!(index_of(&fields), Some(index), "{status}");
        }
        assert_eq!(index_of(&HeaderMap::new()), None);
    }
}

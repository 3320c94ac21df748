//! Refusals of calls: replies with a status only (Trailers-Only of gRPC over HTTP/2).

use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use hyper::{Response, StatusCode};

use super::body::ReplyBody;
use super::grpc::status::{DEADLINE_EXCEEDED, UNAVAILABLE, add};
use super::rejection;
use crate::error::Rejection;
use crate::upstream::error::DEADLINE_PASSED;

const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The gRPC status of a refusal with this status of HTTP.
fn of_http(status: StatusCode) -> u8 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        402 | 413 | 429 => 8,
        403 => 7,
        404 | 501 => 12,
        408 => 1,
        502..=504 => UNAVAILABLE,
        _ => 2,
    }
}

/// Makes the reply of a rejection to a call: the status is in the head, and there is no body.
pub(crate) fn refusal(rejection: Rejection) -> Response<ReplyBody> {
    let message = rejection.reason.clone();
    let status = if message == DEADLINE_PASSED {
        DEADLINE_EXCEEDED
    } else {
        of_http(rejection.status)
    };
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
}

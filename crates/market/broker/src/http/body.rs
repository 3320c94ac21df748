//! Bodies of requests.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header;
use hyper::http::request::Parts;
use posthaste_serve::{BodyError, Incoming, Peer, read_body};
use serde::Deserialize;

use super::problem::ProblemDetails;

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(
    parts: &Parts,
    body: Incoming,
    limit: usize,
    peer: &Peer,
) -> Result<Bytes, ProblemDetails> {
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        let detail = "a body with a content coding is not accepted: send it without one";
        return Err(ProblemDetails::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            detail,
        ));
    }
    read_body(body, limit, peer)
        .await
        .map_err(|error| match error {
            BodyError::TooLong(_) => {
                ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
            }
            BodyError::Broken(_) => ProblemDetails::bad(error.to_string()),
        })
}

/// Deserialises a JSON body.
pub(super) fn from_json<'b, T: Deserialize<'b>>(body: &'b Bytes) -> Result<T, ProblemDetails> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => ProblemDetails::senseless(error.to_string()),
        _ => ProblemDetails::bad(format!("not JSON: {error}")),
    })
}

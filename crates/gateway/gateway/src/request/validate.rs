//! Validation and normalisation of request heads.
//!
//! Heads that two parsers could read differently reach no handler: `serve` has checked the framing, the Host field and
//! its agreement with an absolute target.

use hyper::ext::Protocol;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, StatusCode, Uri, Version};

use crate::error::Rejection;

/// Normalises a request's head for forwarding: origin-form target, one Host; one Cookie from HTTP/2.
pub(crate) fn validate_head(head: &mut Parts) -> Result<(), Rejection> {
    if is_extended_connect(head) {
        // A switch of protocol in HTTP/2 (RFC 8441): a GET in HTTP/1.1.
        head.method = Method::GET;
    }
    if matches!(head.method, Method::CONNECT | Method::TRACE) {
        let reason = format!("{} is not served here", head.method);
        return Err(Rejection::new(StatusCode::NOT_IMPLEMENTED, reason));
    }
    if is_asterisk(&head.uri) && head.method != Method::OPTIONS {
        let reason = "only OPTIONS has the target *";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    }
    // An absolute target and HTTP/2's :authority take precedence over the Host field (RFC 9112, section 3.2.2).
    if let Some(authority) = head.uri.authority() {
        let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
            let reason = "the target's authority is no Host";
            return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
        };
        head.headers.insert(HOST, host);
        let path = head.uri.path_and_query().cloned();
        head.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    }
    if head.version == Version::HTTP_2 {
        join_cookies(&mut head.headers);
    }
    head.version = Version::HTTP_11;
    Ok(())
}

/// True for the target `*`, the server as a whole (RFC 9112, section 3.2.4).
pub(crate) fn is_asterisk(target: &Uri) -> bool {
    target.path() == "*"
}

/// True for the extended CONNECT of HTTP/2. Its head is that of a GET otherwise.
fn is_extended_connect(head: &Parts) -> bool {
    head.method == Method::CONNECT && head.extensions.get::<Protocol>().is_some()
}

/// Joins Cookie fields. HTTP/2 allows several, HTTP/1.1 only one (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if lines.len() > 1 {
        // Never fails: valid values joined by valid bytes are a valid value.
        if let Ok(all) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
            headers.insert(COOKIE, all);
        }
    }
}

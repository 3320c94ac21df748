//! A request's head in the one form that goes on.
//!
//! What two readers could read in two ways no handler gets: `serve` has checked the framing, the Host and what an absolute
//! target says beside it.

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, StatusCode, Uri, Version};

use crate::refusal::Refusal;

/// Brings a request's head into the one form that goes on: a path, one Host, one Cookie.
pub(crate) fn admit(head: &mut Parts) -> Result<(), Refusal> {
    if matches!(head.method, Method::CONNECT | Method::TRACE) {
        let reason = format!("{} is not served here", head.method);
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
    }
    // An absolute target, and HTTP/2's :authority, stand above the Host field (RFC 9112, section 3.2.2).
    if let Some(authority) = head.uri.authority() {
        let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
            let reason = "the target's authority is no Host";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
        };
        head.headers.insert(HOST, host);
        let path = head.uri.path_and_query().cloned();
        head.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    }
    join_cookies(&mut head.headers);
    head.version = Version::HTTP_11;
    Ok(())
}

/// HTTP/2 may send a field for each cookie; HTTP/1.1 has one for all (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if lines.len() > 1 {
        // Made of what were values before, it is one.
        if let Ok(all) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
            headers.insert(COOKIE, all);
        }
    }
}

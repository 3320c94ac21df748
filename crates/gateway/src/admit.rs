//! Which requests go on: those that every server reads in the same way.
//!
//! Two servers that disagree about where a request ends let one client speak in another's name.
//! What two readers could read in two ways is refused here, although a standard may allow to mend it
//! (RFC 9112, sections 3.2 and 6.3). What a field means by itself hyper has checked; of Content-Length
//! beside Transfer-Encoding it has removed the former, and closes the connection after the reply.

use hyper::header::{COOKIE, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{Method, StatusCode, Uri, Version};

use crate::refusal::Refusal;

/// Checks a request's head and brings it into the one form that goes on: a path, and one Host.
pub(crate) fn admit(head: &mut Parts) -> Result<(), Refusal> {
    let refuse = |reason: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, reason));
    if matches!(head.method, Method::CONNECT | Method::TRACE) {
        let reason = format!("{} is not served here", head.method);
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
    }
    if let Some(coding) = head.headers.get(TRANSFER_ENCODING) {
        let one = head.headers.get_all(TRANSFER_ENCODING).iter().count() == 1;
        if !one || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            let reason = "the only transfer coding served here is chunked";
            return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
        }
    }
    let hosts = head.headers.get_all(HOST).iter().count();
    if hosts > 1 {
        return refuse("a request has one Host");
    }
    if !head.headers.get(HOST).is_none_or(is_host) {
        return refuse("the Host is no name or address with or without a port");
    }
    // An absolute target, and HTTP/2's :authority, stand above the Host field (RFC 9112, section 3.2.2).
    if let Some(authority) = head.uri.authority() {
        if head.uri.scheme().is_none() {
            return refuse("a target is a path or a whole URL");
        }
        if authority.as_str().contains('@') {
            return refuse("a target names no user");
        }
        let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
            return refuse("the target's authority is no Host");
        };
        head.headers.insert(HOST, host);
        let path = head.uri.path_and_query().cloned();
        head.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    } else if hosts == 0 && head.version != Version::HTTP_10 {
        return refuse("a request has a Host");
    }
    join_cookies(&mut head.headers);
    head.version = Version::HTTP_11;
    Ok(())
}

/// Whether a value is that of a Host field (RFC 9110, section 7.2): it may be empty.
fn is_host(value: &HeaderValue) -> bool {
    let value = value.as_bytes();
    value.is_empty() || !value.contains(&b'@') && Authority::try_from(value).is_ok()
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

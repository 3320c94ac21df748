//! Validation of a request's head before any service gets it. Ambiguous requests are rejected.
//!
//! The framing of HTTP/1 is checked on the bytes ([`super::RequestFraming`]). This module checks the parsed head, of HTTP/1
//! and of HTTP/2 and HTTP/3: host and target (RFC 9112, section 3.2; RFC 9113, section 8.3.1), expectations (RFC 9110,
//! section 10.1.1), and for HTTP/2 that the fields can be written as HTTP/1 (RFC 9113, section 8.2.1).

use hyper::ext::Protocol;
use hyper::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri, Version};

use crate::framing::Cause;

/// The reply to a request that no service gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Status of the reply.
    pub status: StatusCode,
    /// The rule that the request violates.
    pub reason: &'static str,
}

impl From<Cause> for Rejection {
    fn from(cause: Cause) -> Self {
        let status = match cause {
            Cause::Coding => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::BAD_REQUEST,
        };
        let reason = cause.reason();
        Self { status, reason }
    }
}

/// Checks that a request may go to a service. `max_fields` is for HTTP/2 and HTTP/3; the HTTP/1 parser counts itself.
pub(crate) fn check<B>(request: &Request<B>, max_fields: usize) -> Result<(), Rejection> {
    let headers = request.headers();
    if matches!(request.version(), Version::HTTP_2 | Version::HTTP_3) {
        check_fields(headers, max_fields)?;
    }
    let mut host = None;
    // One pass takes fewer instructions than a lookup for each field.
    for (name, value) in headers {
        if *name == HOST && host.replace(value).is_some() {
            return reject("a request has one Host");
        }
        if *name == EXPECT && !value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
            return Err(Rejection {
                status: StatusCode::EXPECTATION_FAILED,
                reason: "the only expectation met here is 100-continue",
            });
        }
    }
    check_host(request, host)
}

const fn reject(reason: &'static str) -> Result<(), Rejection> {
    Err(Rejection {
        status: StatusCode::BAD_REQUEST,
        reason,
    })
}

/// Applies the rules of HTTP/1 to the fields of HTTP/2.
fn check_fields(headers: &HeaderMap, max_fields: usize) -> Result<(), Rejection> {
    if headers.len() > max_fields {
        return Err(Rejection {
            status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            reason: "a request has more fields than are allowed here",
        });
    }
    if !headers.keys().all(is_token) {
        return reject("a field's name has letters, digits and few signs");
    }
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let padded = |value: &HeaderValue| {
        let value = value.as_bytes();
        is_blank(value.first()) || is_blank(value.last())
    };
    if headers.values().any(padded) {
        return reject("a field's value neither begins nor ends with a blank");
    }
    if headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some() {
        return reject("a request has one Content-Length");
    }
    Ok(())
}

/// True if the name is a token (RFC 9110, section 5.6.2).
fn is_token(name: &HeaderName) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    name.as_str().bytes().all(is_tchar)
}

/// True for the extended CONNECT of HTTP/2 (RFC 8441, section 4).
fn is_extended_connect<B>(request: &Request<B>) -> bool {
    *request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_some()
}

fn check_host<B>(request: &Request<B>, host: Option<&HeaderValue>) -> Result<(), Rejection> {
    if let Some(host) = host
        && !is_host(host.as_bytes())
    {
        return reject("the Host is no name or address with or without a port");
    }
    let target = request.uri().authority();
    let must_have = match request.version() {
        Version::HTTP_11 => true,
        Version::HTTP_2 | Version::HTTP_3 => target.is_none(),
        _ => false,
    };
    if must_have && host.is_none() {
        return reject("a request has a Host");
    }
    // The target of CONNECT is not compared with Host, except that of the extended one, which is a whole URL.
    let is_compared = *request.method() != Method::CONNECT || is_extended_connect(request);
    let Some(target) = target.filter(|_| is_compared) else {
        return Ok(());
    };
    if request.uri().scheme().is_none() {
        return reject("a target is a path or a whole URL");
    }
    if target.as_str().contains('@') {
        return reject("a target names no user");
    }
    if !is_host(target.as_str().as_bytes()) {
        return reject("the target is to no name or address");
    }
    match host {
        Some(host) if !is_same(request.uri(), host.as_bytes()) => {
            reject("the Host is not the one that the target names")
        }
        _ => Ok(()),
    }
}

/// Compares an absolute target with `host`, ignoring case and the scheme's default port.
fn is_same(target: &Uri, host: &[u8]) -> bool {
    let named = target.authority().map_or("", |target| target.as_str());
    if named.as_bytes().eq_ignore_ascii_case(host) {
        return true;
    }
    let own: &[u8] = match target.scheme_str() {
        Some("https") => b":443",
        _ => b":80",
    };
    let bare = |name: &[u8]| name.strip_suffix(own).unwrap_or(name).to_ascii_lowercase();
    bare(named.as_bytes()) == bare(host)
}

/// True if the bytes are a host with or without a port (RFC 9110, section 7.2; RFC 3986, section 3.2.2). An empty host
/// is invalid for http and https.
fn is_host(value: &[u8]) -> bool {
    let (name, rest) = match value {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else {
                return false;
            };
            let address = std::str::from_utf8(&rest[..end]).unwrap_or_default();
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            (&b"v6"[..], &rest[end + 1..])
        }
        _ => value.split_at(memchr::memchr(b':', value).unwrap_or(value.len())),
    };
    let is_port = match rest {
        [] => true,
        [b':', port @ ..] => port.len() <= 5 && port.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_port && is_name(name)
}

/// True if the bytes are a name without empty labels, except the root's at the end.
fn is_name(name: &[u8]) -> bool {
    let mut last = b'.';
    for &byte in name {
        if !IN_NAME[usize::from(byte)] || (byte == b'.' && last == b'.') {
            return false;
        }
        last = byte;
    }
    !name.is_empty()
}

/// Bytes allowed in a name (RFC 3986, section 3.2.2).
static IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b".-_~%!$&'()*+,;=";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses() {
        for host in [
            "s",
            "a.b",
            "a.b.",
            "a-b_c:8080",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:443",
            "a%20b",
            "s:",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "", ":80", ".", ".a", "a..b", "a.b..", "u@h", "a b", "a/b", "a:b", "a:1:2", "a:123456",
            "[::1", "[x]", "[]", "[::1]x", "a\\b", "a?b", "a#b", "a<b", "\u{e4}",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }

    fn status(request: hyper::http::request::Builder) -> u16 {
        check(&request.body(()).unwrap(), 100)
            .map_or_else(|rejection| rejection.status.as_u16(), |()| 200)
    }

    #[test]
    fn a_target_and_its_host_agree() {
        let request = |target: &str, host: &str| Request::get(target).header(HOST, host);
        for (target, host, wanted) in [
            ("/", "s", 200),
            ("http://s/", "s", 200),
            ("http://s:80/", "S", 200),
            ("https://s/", "s:443", 200),
            ("http://s/", "s:443", 400),
            ("http://s/", "other", 400),
            ("http://u@s/", "s", 400),
            ("http://a..b/", "a..b", 400),
        ] {
            assert_eq!(status(request(target, host)), wanted, "{target} {host}");
            let http2 = request(target, host).version(Version::HTTP_2);
            assert_eq!(status(http2), wanted, "{target} {host}");
        }
        assert_eq!(status(Request::get("http://s/")), 400);
        assert_eq!(status(Request::get("/").version(Version::HTTP_10)), 200);
        let http2 = Request::get("http://s/").version(Version::HTTP_2);
        assert_eq!(status(http2), 200);
        assert_eq!(status(Request::get("/").version(Version::HTTP_2)), 400);
        assert_eq!(status(request("/", "s").header(HOST, "s")), 400);
    }

    #[test]
    fn fields_of_http_2_are_those_of_http_1() {
        let request = || Request::get("http://s/").version(Version::HTTP_2);
        let named = |name: &[u8]| HeaderName::from_lowercase(name).unwrap();
        for (name, value, wanted) in [
            (&b"x"[..], "a b", 200),
            (b"x", "", 200),
            (b"x", " a", 400),
            (b"x", "a\t", 400),
            (b"x\"", "a", 400),
            (b"expect", "100-Continue", 200),
            (b"expect", "the unexpected", 417),
        ] {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            assert_eq!(
                status(request().header(named(name), value)),
                wanted,
                "{name:?}"
            );
        }
        let twice = request()
            .header(CONTENT_LENGTH, "5")
            .header(CONTENT_LENGTH, "5");
        assert_eq!(status(twice), 400);
        let many =
            |count| (0..count).fold(request(), |request, n| request.header(format!("x{n}"), "y"));
        assert_eq!((status(many(100)), status(many(101))), (200, 431));
    }
}

//! The reply to a request over plain HTTP that is to be sent over HTTPS: 308 (RFC 9110, section 15.4.9).

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::body::ReplyBody;
use crate::error::Rejection;

/// Port of HTTPS that a URL need not name (RFC 9110, section 4.2.2).
const DEFAULT_PORT: u16 = 443;

/// Redirects a validated request to the same URL with `https` and `port`. Without a Host, as HTTP/1.0 permits, there is
/// no such URL: the request is rejected with 400.
pub(crate) fn to_https(head: &Parts, port: u16) -> Result<Response<ReplyBody>, Rejection> {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let url = host.map(|host| {
        url(
            host,
            head.uri.path_and_query().map_or("/", |to| to.as_str()),
            port,
        )
    });
    let Some(location) = url.and_then(|url| HeaderValue::try_from(url).ok()) else {
        let reason =
            "a request without a Host cannot be redirected to https: send a Host, or use https";
        return Err(Rejection::new(StatusCode::BAD_REQUEST, reason));
    };
    let mut reply = Response::new(ReplyBody::Whole(Bytes::from_static(
        b"this service is served over https\n",
    )));
    *reply.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let fields = reply.headers_mut();
    fields.insert(LOCATION, location);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(reply)
}

/// The URL of `host`, whose port is replaced, and of a target in origin form or `*`.
fn url(host: &str, target: &str, port: u16) -> String {
    // The colons of an IPv6 address are within brackets.
    let name_end = host.rfind(']').map_or(0, |bracket| bracket + 1);
    let port_start = host[name_end..].find(':').map(|colon| name_end + colon);
    let name = &host[..port_start.unwrap_or(host.len())];
    // `*` means the server, whose URL has no path (RFC 9112, section 3.2.4).
    let target = if target == "*" { "" } else { target };
    match port {
        DEFAULT_PORT => format!("https://{name}{target}"),
        _ => format!("https://{name}:{port}{target}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_all_but_scheme_and_port() {
        for (host, target, port, expected) in [
            ("shop.example", "/", 443, "https://shop.example/"),
            (
                "shop.example:80",
                "/a?b=c",
                443,
                "https://shop.example/a?b=c",
            ),
            ("shop.example:", "/", 443, "https://shop.example/"),
            (
                "Shop.example.:8080",
                "//b",
                8443,
                "https://Shop.example.:8443//b",
            ),
            ("[::1]", "/", 8443, "https://[::1]:8443/"),
            ("[2001:db8::7]:80", "/", 443, "https://[2001:db8::7]/"),
            ("192.0.2.7:80", "*", 8443, "https://192.0.2.7:8443"),
        ] {
            assert_eq!(url(host, target, port), expected);
        }
    }
}

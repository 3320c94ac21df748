//! Trailers of requests and replies: the fields that no trailer may be, and those that a route changes in the head.
//!
//! Recipients may merge trailers into the head. What a client may not state there, it may not state here either: a field
//! that the route removes is removed, and one that it sets has its value from the head alone.

use std::rc::Rc;

use hyper::HeaderMap;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    COOKIE, EXPECT, HOST, HeaderName, MAX_FORWARDS, RANGE, SET_COOKIE, TRAILER, WWW_AUTHENTICATE,
};

use super::field_names::{is_about_client, is_of_certificate};
use super::field_syntax::{FieldError, check_fields};
use super::headers::strip_hop_by_hop_and;

/// Names of trailers that a route removes. `None` for none.
pub(crate) type RemovedTrailers = Option<Rc<[HeaderName]>>;

/// Removes from the trailers of a request the fields that cannot be trailers, those about the client, and `removed`.
pub(super) fn clean_request(
    trailers: &mut HeaderMap,
    removed: &RemovedTrailers,
) -> Result<(), FieldError> {
    clean(trailers, removed, |name| {
        is_about_client(name) || is_of_certificate(name)
    })
}

/// Removes from the trailers of a reply the fields that cannot be trailers, and `removed`.
pub(crate) fn clean_reply(
    trailers: &mut HeaderMap,
    removed: &RemovedTrailers,
) -> Result<(), FieldError> {
    clean(trailers, removed, |_| false)
}

fn clean(
    trailers: &mut HeaderMap,
    removed: &RemovedTrailers,
    drops: impl Fn(&HeaderName) -> bool,
) -> Result<(), FieldError> {
    check_fields(trailers)?;
    let is_removed = |name: &HeaderName| removed.iter().any(|removed| removed.contains(name));
    strip_hop_by_hop_and(trailers, |name| {
        is_for_head(name) || drops(name) || is_removed(name)
    });
    Ok(())
}

/// True for fields about framing, routing, authentication, conditions and content, which a recipient needs before the
/// content (RFC 9110, section 6.5.1).
fn is_for_head(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 15] = [
        AUTHORIZATION,
        CACHE_CONTROL,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        CONTENT_RANGE,
        CONTENT_TYPE,
        COOKIE,
        EXPECT,
        HOST,
        MAX_FORWARDS,
        RANGE,
        SET_COOKIE,
        TRAILER,
        WWW_AUTHENTICATE,
        HeaderName::from_static("http2-settings"),
    ];
    NAMES.contains(name) || name.as_str().starts_with("if-")
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn left(names: &[&'static str], removed: &[&'static str]) -> Vec<String> {
        let mut trailers = HeaderMap::new();
        for name in names {
            trailers.insert(*name, HeaderValue::from_static("x"));
        }
        let removed = removed.iter().map(|name| HeaderName::from_static(name));
        clean_request(&mut trailers, &Some(removed.collect())).unwrap();
        trailers.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_that_belong_into_the_head_are_removed() {
        let names = [
            "authorization",
            "connection",
            "content-length",
            "cookie",
            "expect",
            "host",
            "if-match",
            "te",
            "transfer-encoding",
            "trailer",
            "upgrade",
            "x-forwarded-for",
            "client_cert",
        ];
        assert_eq!(left(&names, &[]), [""; 0]);
        assert_eq!(left(&["grpc-status", "x-sum"], &["x-sum"]), ["grpc-status"]);
    }
}

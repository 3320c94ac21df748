//! Replacement of a route's path prefix in requests, and the reverse in the locations of replies.

use std::borrow::Cow;

use hyper::header::{CONTENT_LOCATION, HOST, HeaderMap, HeaderValue, LOCATION};
use hyper::http::uri::PathAndQuery;
use hyper::{StatusCode, Uri};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use posthaste_http::path::normalize_path;
use thiserror::Error;

use crate::error::Rejection;

/// Bytes encoded in the path of a location; those beyond ASCII are in any case.
const UNWRITTEN: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>');

/// Maximum length of a target, as in requests.
const MAX_TARGET: usize = u16::MAX as usize - 1;

/// Replacement of a path prefix.
#[derive(Debug)]
pub(crate) struct PathRewrite {
    /// The prefix in its normal form, without a slash at the end.
    from: String,
    /// The prefix as locations have it, without a slash at the end.
    from_written: String,
    /// The replacement, without a slash at the end.
    to: String,
    /// The replacement in its normal form, without a slash at the end.
    to_normal: String,
}

/// Reasons why the prefix of a path cannot be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum RewriteError {
    /// The replaced prefix has parameters (RFC 3986, section 3.3), which would be lost.
    #[error("the path has parameters in the part that is replaced for the upstream")]
    Parameters,
    /// Dot segments or encoded slashes lead to another path after the replacement than before.
    #[error(
        "the path leads out of the part that is replaced for the upstream: send its normal form"
    )]
    Escapes,
    /// The rewritten path would begin with two slashes, and could be read as the name of a host.
    #[error("the path has an empty segment behind the part that is replaced for the upstream")]
    EmptySegment,
    /// The replacement is longer than the prefix, and the rewritten target too long.
    #[error("the target is longer than {MAX_TARGET} bytes after the rewrite for the upstream")]
    TooLong,
}

impl From<RewriteError> for Rejection {
    fn from(error: RewriteError) -> Self {
        let status = match error {
            RewriteError::TooLong => StatusCode::URI_TOO_LONG,
            RewriteError::Parameters | RewriteError::Escapes | RewriteError::EmptySegment => {
                StatusCode::BAD_REQUEST
            }
        };
        Self::new(status, error.to_string())
    }
}

/// Replacement of the upstream's prefix in the locations of one reply.
#[derive(Debug)]
pub(crate) struct LocationReversal<'r> {
    rewrite: &'r PathRewrite,
    /// Host of the request as received.
    named: Option<HeaderValue>,
    /// Host of the request to the upstream.
    sent: Option<HeaderValue>,
}

impl PathRewrite {
    /// Creates the replacement of `path` by `rewrite`, as configured.
    pub(crate) fn new(path: &str, rewrite: &str) -> Self {
        let to = rewrite.trim_end_matches('/');
        let bare = |path: &str| normalize_path(path).trim_end_matches('/').to_owned();
        Self {
            from: bare(path),
            from_written: utf8_percent_encode(path.trim_end_matches('/'), UNWRITTEN).to_string(),
            to: to.to_owned(),
            to_normal: bare(to),
        }
    }

    /// Returns the target for the upstream. `target` has been routed to this prefix, in its normal form and as written.
    pub(crate) fn apply(&self, target: &Uri) -> Result<Uri, RewriteError> {
        let path = self.path(target.path())?;
        let target = match target.query() {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        if target.len() > MAX_TARGET {
            return Err(RewriteError::TooLong);
        }
        let target = PathAndQuery::try_from(target);
        Ok(Uri::from(target.expect("parts of valid paths form one")))
    }

    fn path(&self, path: &str) -> Result<String, RewriteError> {
        let normal = normalize_path(path);
        let is_plain = matches!(normal, Cow::Borrowed(_));
        // As many segments as the prefix has, however they are spelled.
        let depth = self.from.matches('/').count();
        let mut slashes = path.match_indices('/').map(|(at, _)| at);
        let end = slashes.nth(depth).unwrap_or(path.len());
        let (replaced, rest) = path.split_at(end);
        debug_assert!(!is_plain || replaced == self.from, "the route is another");
        let has_parameters = || {
            let replaced = replaced.to_ascii_lowercase();
            replaced.contains(';') || replaced.contains("%3b")
        };
        if !is_plain && has_parameters() {
            return Err(RewriteError::Parameters);
        }
        let rewritten = or_root(format!("{}{rest}", self.to));
        if rewritten.starts_with("//") && !path.starts_with("//") {
            return Err(RewriteError::EmptySegment);
        }
        if !is_plain {
            self.check_place(&normal, &rewritten)?;
        }
        if normal.contains('\\') {
            let (path, rewritten) = (as_slashes(path), as_slashes(&rewritten));
            self.check_place(&normalize_path(&path), &rewritten)?;
        }
        Ok(rewritten)
    }

    /// Fails if a path and its rewritten form are at different places below their prefixes.
    fn check_place(&self, normal: &str, rewritten: &str) -> Result<(), RewriteError> {
        let below = normal.strip_prefix(&*self.from);
        let below = below.ok_or(RewriteError::Escapes)?;
        if *normalize_path(rewritten) == or_root(format!("{}{below}", self.to_normal)) {
            Ok(())
        } else {
            Err(RewriteError::Escapes)
        }
    }

    /// Prepares the reversal for the reply to a request. `named` is the Host that the client sent.
    pub(crate) fn reversal(
        &self,
        named: Option<HeaderValue>,
        headers: &HeaderMap,
    ) -> LocationReversal<'_> {
        LocationReversal {
            rewrite: self,
            named,
            sent: headers.get(HOST).cloned(),
        }
    }
}

impl LocationReversal<'_> {
    /// Changes `Location` and `Content-Location` if they lead below the replacement on the requested host.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        for name in [LOCATION, CONTENT_LOCATION] {
            let location = headers
                .get(&name)
                .and_then(|location| location.to_str().ok());
            let location = location.and_then(|location| self.location(location));
            if let Some(Ok(location)) = location.map(HeaderValue::try_from) {
                headers.insert(name, location);
            }
        }
    }

    /// Returns the changed location. `None` if it stays.
    fn location(&self, location: &str) -> Option<String> {
        let (authority, path) = split_location(location)?;
        let text = |host: &Option<HeaderValue>| Some(host.as_ref()?.to_str().ok()?.to_owned());
        let before = match authority {
            None => "",
            Some(authority) => {
                if !text(&self.sent)?.eq_ignore_ascii_case(authority) {
                    return None;
                }
                // The name of the upstream means nothing to the client.
                let is_known = self.named == self.sent;
                let before = &location[..location.len() - path.len()];
                if is_known { before } else { "" }
            }
        };
        let below = path.strip_prefix(&*self.rewrite.to)?;
        if !below.is_empty() && !below.starts_with(['/', '?', '#']) {
            return None;
        }
        let changed = format!("{before}{}{below}", self.rewrite.from_written);
        // An empty reference is to the request's own target, and two slashes begin the name of a host.
        let leads_elsewhere = changed.starts_with("//") && before.is_empty();
        if changed.starts_with('/') || !before.is_empty() {
            (!leads_elsewhere).then_some(changed)
        } else {
            Some(format!("/{changed}"))
        }
    }
}

/// Splits a location into the authority, if it has one, and the rest from the path on. `None` for a relative path and
/// for other schemes.
fn split_location(location: &str) -> Option<(Option<&str>, &str)> {
    let scheme = |name: &str| {
        let start = location.get(..name.len())?;
        start
            .eq_ignore_ascii_case(name)
            .then(|| &location[name.len()..])
    };
    let behind = scheme("http://").or_else(|| scheme("https://"));
    match behind.or_else(|| location.strip_prefix("//")) {
        Some(behind) => {
            let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
            let (authority, path) = behind.split_at(end);
            Some((Some(authority), path))
        }
        None => location.starts_with('/').then_some((None, location)),
    }
}

/// The path as servers read it that take a backslash for a slash.
fn as_slashes(path: &str) -> String {
    path.replace('\\', "/")
        .replace("%5c", "/")
        .replace("%5C", "/")
}

fn or_root(path: String) -> String {
    if path.is_empty() {
        "/".to_owned()
    } else {
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(from: &str, to: &str, path: &str) -> Result<String, RewriteError> {
        PathRewrite::new(from, to).path(path)
    }

    #[test]
    fn the_prefix_is_replaced_and_the_rest_stays_as_written() {
        for (from, to, path, wanted) in [
            ("/shop", "/", "/shop", "/"),
            ("/shop", "/", "/shop/", "/"),
            ("/shop/", "/", "/shop/1", "/1"),
            ("/shop", "/x/", "/shop", "/x"),
            ("/shop", "/x", "/shop/1/", "/x/1/"),
            ("/", "/x", "/", "/x/"),
            ("/", "/x", "/1", "/x/1"),
            ("/", "/", "//1", "//1"),
            ("/a/b", "/c", "/a/b/d", "/c/d"),
            ("/shop", "/x", "/%73hop/%31;p=1/%2e", "/x/%31;p=1/%2e"),
            ("/shop", "/x", "/shop//1", "/x//1"),
            ("/shop", "/x", "/shop/a/../b", "/x/a/../b"),
            ("/shop", "/x", "/shop/a%2fb", "/x/a%2fb"),
            ("/caf\u{e9}", "/%C3%A9", "/caf%c3%a9/1", "/%C3%A9/1"),
        ] {
            let rewritten = rewritten(from, to, path);
            assert_eq!(rewritten.as_deref(), Ok(wanted), "{from} {to} {path}");
        }
    }

    #[test]
    fn paths_that_would_leave_the_replacement_are_rejected() {
        use RewriteError::{EmptySegment, Escapes, Parameters};
        for (from, to, path, wanted) in [
            ("/shop", "/", "/shop//evil.example", EmptySegment),
            ("/shop", "/x", "/shop/..%2fshop/1", Escapes),
            ("/shop", "/", "/shop/a/../../shop/b", Escapes),
            ("/shop", "/x", "/shop/../shop", Escapes),
            ("/", "/x", "/..%2fadmin", Escapes),
            ("/", "/x", "/../admin", Escapes),
            ("/", "/x", "/%2e%2e/admin", Escapes),
            ("/", "/x", "/..;/admin", Escapes),
            ("/shop", "/x", "/shop/..%5cadmin", Escapes),
            ("/shop", "/x", "/shop/a%5C..%5C..%5Cadmin", Escapes),
            ("/shop", "/x", "/shop;p=1/a", Parameters),
            ("/shop", "/x", "/shop%3Bp/a", Parameters),
        ] {
            let rewritten = rewritten(from, to, path);
            assert_eq!(rewritten, Err(wanted), "{from} {to} {path}");
        }
    }

    #[test]
    fn a_target_that_becomes_too_long_is_rejected() {
        let rewrite = PathRewrite::new("/a", "/longer");
        let apply = |length: usize, query: &str| {
            let target = format!("/a/{}{query}", "x".repeat(length - 3 - query.len()));
            rewrite.apply(&target.parse().unwrap())
        };
        for query in ["", "?q=1"] {
            let longest = apply(MAX_TARGET - 5, query).unwrap();
            assert_eq!(longest.to_string().len(), MAX_TARGET);
            assert_eq!(apply(MAX_TARGET - 4, query), Err(RewriteError::TooLong));
            assert_eq!(apply(MAX_TARGET, query), Err(RewriteError::TooLong));
        }
    }

    fn location(from: &str, to: &str, hosts: (&str, &str), location: &str) -> String {
        let rewrite = PathRewrite::new(from, to);
        let value = |host: &str| Some(HeaderValue::from_str(host).unwrap());
        let reversal = LocationReversal {
            rewrite: &rewrite,
            named: value(hosts.0),
            sent: value(hosts.1),
        };
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_str(location).unwrap());
        reversal.apply(&mut headers);
        headers[LOCATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn locations_below_the_replacement_get_the_prefix_back() {
        let same = ("shop.example", "shop.example");
        let other = ("shop.example", "internal:81");
        for (from, to, hosts, before, wanted) in [
            ("/shop", "/", same, "/1?q#f", "/shop/1?q#f"),
            ("/shop", "/", same, "/", "/shop/"),
            ("/shop", "/x", same, "/x", "/shop"),
            ("/shop", "/x", same, "/x?q", "/shop?q"),
            ("/shop", "/x", same, "/xy", "/xy"),
            ("/shop", "/x", same, "/other", "/other"),
            ("/shop", "/x", same, "1", "1"),
            ("/shop", "/", same, "mailto:a@b", "mailto:a@b"),
            ("/shop", "/", same, "", ""),
            ("/", "/x", same, "/x", "/"),
            ("/", "/x", same, "/x?q", "/?q"),
            ("/", "/x", same, "/x//evil.example", "/x//evil.example"),
            ("/shop", "/", same, "//evil.example/", "//evil.example/"),
            (
                "/shop",
                "/",
                same,
                "//shop.example/1",
                "//shop.example/shop/1",
            ),
            (
                "/shop",
                "/x",
                same,
                "https://Shop.example/x/1",
                "https://Shop.example/shop/1",
            ),
            (
                "/shop",
                "/",
                same,
                "http://shop.example",
                "http://shop.example/shop",
            ),
            (
                "/",
                "/x",
                same,
                "http://shop.example/x//a",
                "http://shop.example//a",
            ),
            ("/shop", "/", same, "http://other/1", "http://other/1"),
            (
                "/shop",
                "/",
                same,
                "http://shop.example:81/1",
                "http://shop.example:81/1",
            ),
            ("/shop", "/", other, "http://internal:81/1", "/shop/1"),
            (
                "/shop",
                "/",
                other,
                "http://shop.example/1",
                "http://shop.example/1",
            ),
            ("/caf\u{e9}", "/x", same, "/x/1", "/caf%C3%A9/1"),
        ] {
            let changed = location(from, to, hosts, before);
            assert_eq!(changed, wanted, "{from} {to} {before}");
        }
    }
}

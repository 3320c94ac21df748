//! Header fields of forwarded requests and replies (RFC 9110, section 7.6).

use hyper::HeaderMap;
use hyper::Version;
use hyper::header::{
    AsHeaderName, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
    VIA,
};

use super::field_names::is_about_client;

/// Fields with a digest or signature of the content (RFC 9530, RFC 9421).
static SEALS: [HeaderName; 5] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("signature"),
];

/// Returns the lines of a field.
pub(crate) fn field_lines(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> impl DoubleEndedIterator<Item = &[u8]> {
    headers
        .get_all(name)
        .into_iter()
        .map(|line| line.as_bytes())
}

/// True if a message fixes its content byte by byte, in its header or announced trailers.
pub(crate) fn is_sealed(headers: &HeaderMap) -> bool {
    let is_seal = |name: &str| {
        SEALS
            .iter()
            .any(|seal| name.eq_ignore_ascii_case(seal.as_str()))
    };
    let names_seal = |line: &HeaderValue| {
        let line = line.to_str().unwrap_or_default();
        line.split(',').any(|name| is_seal(name.trim()))
    };
    headers
        .iter()
        .any(|(name, line)| SEALS.contains(name) || (*name == TRAILER && names_seal(line)))
}

/// Removes hop-by-hop fields and the fields that Connection names.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    strip_hop_by_hop_and(headers, |_| false);
}

/// Removes hop-by-hop fields, the fields that Connection names, and those for which `drops` holds.
pub(crate) fn strip_hop_by_hop_and(headers: &mut HeaderMap, drops: impl Fn(&HeaderName) -> bool) {
    let is_gone = |name: &&HeaderName| is_of_one_hop(name) || drops(name);
    let own = headers.keys().filter(is_gone).cloned();
    let mut gone: Vec<HeaderName> = own.collect();
    if gone.contains(&CONNECTION) {
        let named = headers
            .get_all(CONNECTION)
            .iter()
            // The most frequent value; this field is removed in any case.
            .filter(|field| !field.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
            .filter_map(|field| field.to_str().ok())
            .flat_map(|field| field.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .filter(|name| !is_for_all_hops(name));
        gone.extend(named);
    }
    for name in gone {
        headers.remove(name);
    }
}

/// True if a field stays even when Connection names it. Routing and framing need it, or the gateway writes it. A client
/// must not suppress the forwarding information for the upstream (RFC 9110, section 7.6.1).
fn is_for_all_hops(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "content-encoding" | "content-length" | "host" | "traceparent" | "tracestate" | "via"
    ) || is_about_client(name)
}

/// Normalises Content-Length: none with a transfer coding (RFC 9112, section 6.3), one value instead of equal
/// repetitions, and none if values differ.
pub(crate) fn normalize_content_length(headers: &mut HeaderMap) {
    let Some(first) = headers.get(CONTENT_LENGTH) else {
        return;
    };
    let coded = headers.contains_key(TRANSFER_ENCODING);
    let again = headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some();
    if !coded && !again && !first.as_bytes().contains(&b',') {
        return;
    }
    let lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = lengths.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let one = lengths.next().map(<[u8]>::trim_ascii);
    let agreed = lengths.all(|other| Some(other.trim_ascii()) == one);
    let one = one.and_then(|one| HeaderValue::from_bytes(one).ok());
    headers.remove(CONTENT_LENGTH);
    if let (false, true, Some(one)) = (coded, agreed, one) {
        headers.insert(CONTENT_LENGTH, one);
    }
}

/// True if a field is hop-by-hop.
fn is_of_one_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Adds the protocol version of the client's request.
pub(crate) fn add_via(headers: &mut HeaderMap, by: Version) {
    let us = match by {
        Version::HTTP_10 => "1.0 posthaste",
        Version::HTTP_2 => "2.0 posthaste",
        _ => "1.1 posthaste",
    };
    headers.append(VIA, HeaderValue::from_static(us));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_removes_only_fields_of_one_hop() {
        let mut headers = HeaderMap::new();
        let named = "host, Content-Length, transfer-encoding, via, X-Forwarded-For, x-own, close";
        for (name, value) in [
            ("connection", named),
            ("host", "s"),
            ("content-length", "5"),
            ("via", "1.1 other"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-own", "1"),
            ("transfer-encoding", "chunked"),
            ("x-other", "2"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            [
                "content-length",
                "host",
                "via",
                "x-forwarded-for",
                "x-other"
            ]
        );
    }

    #[test]
    fn a_seal_may_come_behind_the_content() {
        let mut headers = HeaderMap::new();
        headers.insert(TRAILER, HeaderValue::from_static("X-Sum"));
        assert!(!is_sealed(&headers));
        headers.append(TRAILER, HeaderValue::from_static("x-time, Content-Digest"));
        assert!(is_sealed(&headers));
    }
}

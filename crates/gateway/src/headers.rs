//! Header fields on their way through a gateway (RFC 9110, section 7.6).

use std::net::SocketAddr;

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRANSFER_ENCODING, UPGRADE, VIA,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What concerns one connection and not the next.
const OF_ONE_HOP: [HeaderName; 8] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields that hold a digest or a signature of the content as it is (RFC 9530, RFC 9421).
const SEALS: [HeaderName; 5] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("signature"),
];

/// Whether a message says what its content must be, byte by byte.
pub(crate) fn is_sealed(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| SEALS.contains(name))
}

/// Takes away what concerns one connection only, and what the Connection field names.
pub(crate) fn strip_hop(headers: &mut HeaderMap) {
    // Most messages have none of them: one look instead of eight.
    if !headers.keys().any(|name| OF_ONE_HOP.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(','))
        .map(str::trim)
        // What nearly all of them say, and no field's name but one that goes anyway.
        .filter(|name| {
            !name.eq_ignore_ascii_case("keep-alive") && !name.eq_ignore_ascii_case("close")
        })
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in OF_ONE_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Says to the upstream for whom the request is, and through whom it came.
pub(crate) fn say_for_whom(headers: &mut HeaderMap, client: SocketAddr, https: bool) {
    // Several lines of a list are one list: what came before us stays.
    if let Ok(address) = HeaderValue::try_from(client.ip().to_string()) {
        headers.append(FORWARDED_FOR, address);
    }
    let scheme = if https { "https" } else { "http" };
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static(scheme));
    headers.append(VIA, HeaderValue::from_static("1.1 posthaste"));
}

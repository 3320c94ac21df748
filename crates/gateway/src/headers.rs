//! Header fields on their way through a gateway (RFC 9110, section 7.6).

use hyper::HeaderMap;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING, VIA};
use posthaste_serve::Peer;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");
const US: HeaderValue = HeaderValue::from_static("1.1 posthaste");

/// Fields that hold a digest or a signature of the content as it is (RFC 9530, RFC 9421).
static SEALS: [HeaderName; 5] = [
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
    let own = headers.keys().filter(|name| is_of_one_hop(name)).cloned();
    let named = headers
        .get_all(CONNECTION)
        .iter()
        // What nearly all of them say, and it goes anyway.
        .filter(|field| !field.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(','))
        .filter_map(|name| name.trim().parse().ok());
    let gone: Vec<HeaderName> = own.chain(named).collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Leaves of a message's lengths the one that it has: none beside a transfer coding (RFC 9112, section 6.3), and one where
/// it is said several times.
pub(crate) fn one_length(headers: &mut HeaderMap) {
    let Some(first) = headers.get(CONTENT_LENGTH) else {
        return;
    };
    let coded = headers.contains_key(TRANSFER_ENCODING);
    let again = headers.get_all(CONTENT_LENGTH).iter().nth(1).is_some();
    if !coded && !again && !first.as_bytes().contains(&b',') {
        return;
    }
    let said = headers.get_all(CONTENT_LENGTH).iter();
    let mut said = said.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let one = said.next().map(<[u8]>::trim_ascii);
    let agreed = said.all(|other| Some(other.trim_ascii()) == one);
    let one = one.and_then(|one| HeaderValue::from_bytes(one).ok());
    headers.remove(CONTENT_LENGTH);
    if let (false, true, Some(one)) = (coded, agreed, one) {
        headers.insert(CONTENT_LENGTH, one);
    }
}

/// Whether a field concerns one connection and not the next.
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

/// Says to the upstream for whom the request is, and through whom it came.
pub(crate) fn say_for_whom(headers: &mut HeaderMap, client: &Peer, https: bool) {
    // Several lines of a list are one list: what came before us stays.
    headers.append(FORWARDED_FOR, client.ip().clone());
    headers.insert(FORWARDED_PROTO, if https { HTTPS } else { HTTP });
    headers.append(VIA, US);
}

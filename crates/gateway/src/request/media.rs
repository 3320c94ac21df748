//! Content types that the gateway treats apart.

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// Content type of gRPC, before a format such as `+proto`.
const MEDIA: &[u8] = b"application/grpc";

/// True for a content type of gRPC, in any format. gRPC-Web is another protocol.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).map(|media| media.as_bytes());
    let start = media.and_then(|media| media.split_at_checked(MEDIA.len()));
    start.is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(MEDIA) && matches!(rest, [] | [b'+' | b';' | b' ' | b'\t', ..])
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn the_content_type_tells_calls_from_other_requests() {
        let is = |media: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
            is_grpc(&headers)
        };
        for call in [
            "application/grpc",
            "Application/gRPC+proto",
            "application/grpc; a=b",
        ] {
            assert!(is(call), "{call}");
        }
        for other in [
            "application/grpc-web",
            "application/grpcx",
            "application/json",
            "",
        ] {
            assert!(!is(other), "{other}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }
}

//! Content types that the gateway treats apart.

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;

/// Content type of gRPC, before a format such as `+proto`.
const MEDIA: &[u8] = b"application/grpc";

/// Content type of server-sent events.
const EVENTS: &[u8] = b"text/event-stream";

/// True for a content type of gRPC, in any format. gRPC-Web is another protocol.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    after(headers, MEDIA).is_some_and(|rest| matches!(rest, [] | [b'+' | b';' | b' ' | b'\t', ..]))
}

/// True for a content type whose body may pause for as long as there is nothing to tell: gRPC and server-sent events.
pub(crate) fn may_pause(headers: &HeaderMap) -> bool {
    let is_end = |rest: &[u8]| matches!(rest, [] | [b';' | b' ' | b'\t', ..]);
    is_grpc(headers) || after(headers, EVENTS).is_some_and(is_end)
}

/// The part of the content type after `media`.
fn after<'a>(headers: &'a HeaderMap, media: &[u8]) -> Option<&'a [u8]> {
    let value = headers.get(CONTENT_TYPE)?.as_bytes();
    let (start, rest) = value.split_at_checked(media.len())?;
    start.eq_ignore_ascii_case(media).then_some(rest)
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

    #[test]
    fn event_streams_and_calls_may_pause() {
        let may = |media: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
            may_pause(&headers)
        };
        for media in [
            "text/event-stream",
            "Text/Event-Stream; charset=utf-8",
            "application/grpc+proto",
        ] {
            assert!(may(media), "{media}");
        }
        for media in ["text/event-streams", "text/html", ""] {
            assert!(!may(media), "{media}");
        }
    }
}

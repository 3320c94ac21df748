//! The time for which an upstream keeps an unused connection.

use std::time::Duration;

use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, TRANSFER_ENCODING};
use hyper::{Response, StatusCode};
use posthaste_http::fields::split;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Time before the end of the upstream's timeout in which a connection is not used again: a request sent then could
/// cross the close. At most half of the timeout.
const MARGIN: Duration = Duration::from_secs(1);

/// The time for which a connection may be used again after a reply with `Keep-Alive: timeout=SECONDS`. `None` without
/// the parameter.
pub(super) fn stated(reply: &HeaderMap) -> Option<Duration> {
    let parameters = reply
        .get_all(KEEP_ALIVE)
        .into_iter()
        .flat_map(|line| split(line.as_bytes(), b','));
    let seconds = parameters.filter_map(|parameter| {
        let (name, value) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let is_timeout = name.trim_ascii().eq_ignore_ascii_case("timeout");
        is_timeout.then(|| value.trim_ascii().parse::<u32>().ok())?
    });
    let timeout = Duration::from_secs(seconds.min()?.into());
    Some(timeout - MARGIN.min(timeout / 2))
}

/// True if nothing in the reply to a HEAD tells where the content of a GET would end, so that it would end with the
/// connection. Such upstreams close after the head, too, without a word.
pub(super) fn ends_with_connection<B>(reply: &Response<B>) -> bool {
    let has_no_content = matches!(
        reply.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    let fields = reply.headers();
    let is_framed = fields.contains_key(CONTENT_LENGTH) || fields.contains_key(TRANSFER_ENCODING);
    !has_no_content && !is_framed
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_connection_is_used_until_shortly_before_its_timeout() {
        for (value, wanted) in [
            ("timeout=5", Some(4_000)),
            ("max=100, Timeout = 60", Some(59_000)),
            ("timeout=1", Some(500)),
            ("timeout=0", Some(0)),
            ("timeout=5, timeout=3", Some(2_000)),
            ("timeout=-1", None),
            ("timeout", None),
            ("max=5", None),
        ] {
            let mut reply = HeaderMap::new();
            reply.insert(KEEP_ALIVE, HeaderValue::from_static(value));
            assert_eq!(stated(&reply), wanted.map(Duration::from_millis), "{value}");
        }
        assert_eq!(stated(&HeaderMap::new()), None);
    }
}

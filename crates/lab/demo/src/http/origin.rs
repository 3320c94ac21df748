//! Protection against cross-site requests: only the demo's own page may control it.
//!
//! - Requests from another site's page: the browser states their origin (`Origin`). It must be this page, if present.
//! - DNS rebinding, in which another site's name resolves to this address: the browser sends that name in `Host`. It
//!   must be an address or `localhost`.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;

use super::reply::HttpRefusal;

/// Rejects requests that may come from another site.
pub(super) fn check(parts: &Parts) -> Result<(), HttpRefusal> {
    let text = |name| parts.headers.get(name).map(|value| value.to_str());
    let Some(Ok(host)) = text(HOST) else {
        return refuse("say in Host where you are");
    };
    if !is_address(host) {
        return refuse("Host is not an address: open the page as http://127.0.0.1:PORT/");
    }
    match text(ORIGIN) {
        None => Ok(()),
        Some(Ok(origin)) if origin.strip_prefix("http://") == Some(host) => Ok(()),
        Some(_) => refuse("only this page may do that"),
    }
}

fn refuse(message: &str) -> Result<(), HttpRefusal> {
    Err(HttpRefusal::new(StatusCode::FORBIDDEN, message.to_owned()))
}

/// Returns true if no DNS server can influence the target of `host`.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut request = hyper::Request::post("/controls");
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts).is_ok()
    }

    #[test]
    fn the_page_itself_may_and_others_may_not() {
        for host in [
            "127.0.0.1:8070",
            "localhost:8070",
            "[::1]:8070",
            "192.168.1.5:80",
            "127.0.0.1",
        ] {
            assert!(permits(Some(host), None), "{host}");
            assert!(
                permits(Some(host), Some(&format!("http://{host}"))),
                "{host}"
            );
            for origin in [
                "http://evil.example",
                "null",
                "http://127.0.0.1:1",
                "https://127.0.0.1:8070",
            ] {
                assert!(!permits(Some(host), Some(origin)), "{host} {origin}");
            }
        }
        for host in [
            "evil.example",
            "evil.example:8070",
            "127.0.0.1.evil.example:80",
            "localhost.evil.example",
            "",
        ] {
            assert!(!permits(Some(host), None), "{host}");
            assert!(
                !permits(Some(host), Some(&format!("http://{host}"))),
                "{host}"
            );
        }
        assert!(!permits(None, None));
    }
}

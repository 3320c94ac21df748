//! Hosts for which the administrative endpoints answer.
//!
//! A page in a browser can let its own name resolve to the address of this machine (DNS rebinding), and then read what it
//! gets from there. Such requests have that name as their host. Addresses, `localhost` and names without a dot, such as
//! those of containers, are in nobody's public zone.

use std::net::IpAddr;

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};

/// Returns the host of a request if it is a name with a dot that is not one of `names`. A request without a host does not
/// come from a browser.
pub(super) fn foreign_host<'r>(
    uri: &'r Uri,
    headers: &'r HeaderMap,
    names: &[String],
) -> Option<&'r str> {
    let field = headers
        .get(HOST)
        .map(|host| host.to_str().unwrap_or_default());
    let host = uri.authority().map(Authority::as_str).or(field)?;
    let name = without_port(host);
    let is_known = name.parse::<IpAddr>().is_ok()
        || (!name.is_empty() && !name.contains(['.', '[', ']']))
        || names.iter().any(|known| name.eq_ignore_ascii_case(known));
    (!is_known).then_some(host)
}

/// The name or address of a host, without brackets.
fn without_port(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn addresses_plain_and_configured_names_are_known() {
        let names = ["Gateway.internal".to_owned()];
        let is_foreign = |uri: &'static str, host: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(HOST, HeaderValue::from_static(host));
            }
            foreign_host(&Uri::from_static(uri), &headers, &names).is_some()
        };
        for host in [
            "127.0.0.1:8081",
            "10.1.2.3",
            "[::1]:8081",
            "localhost:8081",
            "LOCALHOST",
            "gateway:8081",
            "gateway.internal:8081",
        ] {
            assert!(!is_foreign("/status", Some(host)), "{host}");
        }
        for host in ["evil.example:8081", "localhost.evil.example", "", "[::1"] {
            assert!(is_foreign("/status", Some(host)), "{host}");
        }
        assert!(!is_foreign("/status", None));
        assert!(is_foreign("http://evil.example/status", Some("localhost")));
    }
}

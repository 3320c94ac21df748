//! Proxy variables of the environment. `load` does not use them, and reports it.

use posthaste_load::RequestSpec;

/// Returns a note if a variable names a proxy for one of these requests. Requests to this machine need none.
pub(super) fn unused(
    requests: &[RequestSpec],
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let named = requests
        .iter()
        .filter(|request| !is_here(&request.url))
        .flat_map(|request| {
            if request.url.starts_with("https:") {
                ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
            } else {
                ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
            }
        })
        .find(|name| variable(name).is_some_and(|value| !value.is_empty()))?;
    Some(format!(
        "{named} is set and not used: load connects to the servers themselves"
    ))
}

/// True for a URL of this machine.
fn is_here(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|here| host.starts_with(here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_is_not_used_is_named() {
        let note = |url: &str, set: &str| {
            let variable = |name: &str| (name == set).then(|| "http://proxy:3128".to_owned());
            unused(&[RequestSpec::get(url)], variable)
        };
        let named = note("https://shop.example/", "HTTPS_PROXY").unwrap();
        assert!(
            named.starts_with("HTTPS_PROXY is set and not used"),
            "{named}"
        );
        assert!(note("shop.example", "all_proxy").is_some());
        assert_eq!(note("http://shop.example/", "HTTPS_PROXY"), None);
        assert_eq!(note("http://127.0.0.1:8080/", "http_proxy"), None);
        assert_eq!(note("localhost:8080", "http_proxy"), None);
    }
}

//! Checks of host names and paths in the configuration.

use std::net::IpAddr;

use http::uri::PathAndQuery;

/// Accepts a host name, `*.` before a host name, or an IP address.
pub(crate) fn check_host(key: &str, host: &str) -> Result<(), String> {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_plain)
    };
    let is_address = host.parse::<IpAddr>().is_ok();
    if is_address || (name.len() <= 253 && name.split('.').all(is_label)) {
        return Ok(());
    }
    Err(format!(
        "{key} is {host:?}: write a name without a port, such as \"shop.example\" or \"*.shop.example\""
    ))
}

pub(crate) fn check_path(key: &str, path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err(format!("{key} begins with /"));
    }
    path.parse::<PathAndQuery>()
        .map_err(|error| format!("{key} is {path:?}: {error}"))?;
    Ok(())
}

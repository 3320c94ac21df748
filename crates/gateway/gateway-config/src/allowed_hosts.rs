//! Hosts to which offers may send the gateway.
//!
//! Whoever publishes an offer chooses its endpoint. Without this list a provider could make the gateway connect to
//! internal services (server-side request forgery). An address must be in a listed network; a name must be listed or
//! below a listed name, even if its addresses are in a listed network.

use std::net::IpAddr;

use posthaste_serve::Networks;
use thiserror::Error;
use url::{Host, Url};

/// The permitted hosts.
#[derive(Clone, Debug)]
pub struct AllowedHosts(Vec<AllowedHost>);

#[derive(Clone, Debug)]
struct AllowedHost {
    host: HostPattern,
    /// `None` permits all ports.
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum HostPattern {
    Network(Networks),
    /// In lower case.
    Name(String),
    /// Every name that ends with this one after a dot.
    Below(String),
}

/// An entry that is no host.
#[derive(Debug, Error)]
#[error(
    "{0:?} is no host: write a network (10.0.0.0/8), an address (127.0.0.1, [::1]), a name (books.example) or *. before a name, and a port after a colon if needed"
)]
pub struct AllowedError(String);

impl AllowedHosts {
    /// Reads the entries of the configuration.
    pub fn read(entries: &[String]) -> Result<Self, AllowedError> {
        let read = |entry: &String| {
            AllowedHost::read(entry.trim()).ok_or_else(|| AllowedError(entry.clone()))
        };
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// True if the gateway may connect to the host and port of `url`.
    pub fn permit(&self, url: &Url) -> bool {
        let Some(port) = url.port_or_known_default() else {
            return false;
        };
        let permits = |host: &AllowedHost| {
            host.port.is_none_or(|allowed| allowed == port) && host.host.matches(url)
        };
        self.0.iter().any(permits)
    }
}

impl AllowedHost {
    fn read(entry: &str) -> Option<Self> {
        let whole = |text: &str| HostPattern::read(text);
        if let Some(host) = whole(entry) {
            return Some(Self { host, port: None });
        }
        let (host, port) = entry.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        Some(Self {
            host: whole(host)?,
            port: Some(port.parse().ok()?),
        })
    }
}

impl HostPattern {
    fn read(text: &str) -> Option<Self> {
        let address = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(text);
        if let Some(networks) = Networks::one(address) {
            return Some(Self::Network(networks));
        }
        let name = |name: &str| is_name(name).then(|| name.to_ascii_lowercase());
        match text.strip_prefix("*.") {
            Some(below) => Some(Self::Below(name(below)?)),
            None => Some(Self::Name(name(text)?)),
        }
    }

    fn matches(&self, url: &Url) -> bool {
        match (self, url.host()) {
            (Self::Network(networks), Some(Host::Ipv4(address))) => {
                networks.contains(IpAddr::V4(address))
            }
            (Self::Network(networks), Some(Host::Ipv6(address))) => {
                networks.contains(IpAddr::V6(address))
            }
            // The parser of URLs has made it lower case.
            (Self::Name(name), Some(Host::Domain(host))) => host == name,
            (Self::Below(name), Some(Host::Domain(host))) => {
                let label = host.strip_suffix(name.as_str());
                label.is_some_and(|label| label.len() > 1 && label.ends_with('.'))
            }
            _ => false,
        }
    }
}

/// True for a host name with a letter, so that a mistyped address is not taken for a name.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_plain)
    };
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    has_letter && text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(entries: &[&str]) -> AllowedHosts {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        AllowedHosts::read(&entries).unwrap()
    }

    fn permits(hosts: &AllowedHosts, url: &str) -> bool {
        hosts.permit(&Url::parse(url).unwrap())
    }

    #[test]
    fn only_listed_hosts_are_permitted() {
        let hosts = allowed(&[
            "10.0.0.0/8",
            "127.0.0.1:9001",
            "[::1]:9001",
            "2001:db8::/32",
            "Books.Example",
            "*.shop.example:443",
        ]);
        for url in [
            "http://10.1.2.3:80/",
            "http://10.1.2.3:6379",
            "http://127.0.0.1:9001",
            // Other spellings of one address.
            "http://0x7f.1:9001",
            "http://[::ffff:127.0.0.1]:9001",
            "http://[::1]:9001",
            "https://[2001:db8::7]/",
            "http://BOOKS.example:1234",
            "https://a.shop.example/",
            "https://a.b.shop.example/",
        ] {
            assert!(permits(&hosts, url), "{url}");
        }
        for url in [
            "http://127.0.0.1:9002",
            "http://127.0.0.2:9001",
            "http://[::1]:9002",
            "http://169.254.169.254/",
            "http://11.0.0.1/",
            "http://a.books.example/",
            "http://books.example.evil/",
            "https://shop.example/",
            "https://evilshop.example/",
            "http://a.shop.example/",
            "http://localhost:9001/",
        ] {
            assert!(!permits(&hosts, url), "{url}");
        }
    }

    #[test]
    fn a_mistyped_entry_is_refused_with_the_remedy() {
        for entry in [
            "",
            "*",
            "*.",
            "10.0.0.0/33",
            "10.0.0",
            "a..b",
            "a:port",
            "http://a",
            "a b",
            "1.2.3.4:70000",
        ] {
            let error = AllowedHosts::read(&[entry.to_owned()]).unwrap_err();
            assert!(error.to_string().contains("*. before a name"), "{entry:?}");
        }
    }
}

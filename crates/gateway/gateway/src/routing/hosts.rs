//! Selection of routes by host.
//!
//! The most specific host wins: the name itself, then the longest `*.suffix`, then the routes without a host. Routes
//! of less specific hosts do not count then, whatever the path is, as in nginx and Envoy.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::ops::Range;

/// Maximum length of a name (RFC 1035, section 2.3.4). Bounds the number of lookups.
const MAX_NAME: usize = 253;

/// Positions of the routes of each host.
#[derive(Debug)]
pub(super) struct HostIndex {
    exact: HashMap<String, Range<usize>>,
    /// Without the `*.`.
    suffixes: HashMap<String, Range<usize>>,
    /// Routes without a host.
    any: Range<usize>,
}

impl HostIndex {
    /// Creates the index of routes with these hosts, in order. Equal hosts are next to each other. `None` if no route
    /// has a host.
    pub(super) fn new<'a>(hosts: impl Iterator<Item = Option<&'a str>>) -> Option<Self> {
        let mut index = Self {
            exact: HashMap::new(),
            suffixes: HashMap::new(),
            any: 0..0,
        };
        for (position, host) in hosts.enumerate() {
            let range = match host {
                None => &mut index.any,
                Some(host) => match host.strip_prefix("*.") {
                    Some(suffix) => index.suffixes.entry(suffix.to_owned()).or_default(),
                    None => index.exact.entry(host.to_owned()).or_default(),
                },
            };
            if range.start == range.end {
                *range = position..position;
            }
            assert_eq!(range.end, position, "routes of a host are not together");
            range.end = position + 1;
        }
        (!index.exact.is_empty() || !index.suffixes.is_empty()).then_some(index)
    }

    /// Returns the positions of the routes for a Host field.
    pub(super) fn find(&self, host: Option<&str>) -> Range<usize> {
        let found = host
            .and_then(normal_name)
            .and_then(|name| self.range(&name));
        found.unwrap_or(&self.any).clone()
    }

    fn range(&self, name: &str) -> Option<&Range<usize>> {
        let of_suffix = || {
            let dots = name.match_indices('.').map(|(at, _)| at);
            let mut suffixes = dots.map(|at| &name[at + 1..]);
            suffixes.find_map(|suffix| self.suffixes.get(suffix))
        };
        self.exact.get(name).or_else(of_suffix)
    }
}

/// Returns the name or address of a valid Host field in the form of the configuration: in lower case, without the port
/// and the dot of the root. `None` if no route can have it.
fn normal_name(host: &str) -> Option<Cow<'_, str>> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, _) = rest.split_once(']')?;
        let address: Ipv6Addr = address.parse().ok()?;
        return Some(Cow::Owned(address.to_string()));
    }
    let name = host.split(':').next().expect("a split has one part");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > MAX_NAME {
        return None;
    }
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_host_wins() {
        let hosts = [
            None,
            None,
            Some("*.shop.example"),
            Some("192.0.2.1"),
            Some("2001:db8::1"),
            Some("shop.example"),
            Some("*.b.shop.example"),
            Some("a.shop.example"),
            Some("a.shop.example"),
        ];
        let index = HostIndex::new(hosts.into_iter()).unwrap();
        let long = format!("{}shop.example", "a.".repeat(130));
        for (host, wanted) in [
            ("shop.example", 5..6),
            ("SHOP.example.:443", 5..6),
            ("shop.example:", 5..6),
            ("a.shop.example", 7..9),
            ("b.shop.example", 2..3),
            ("c.b.shop.example", 6..7),
            ("d.c.shop.example:80", 2..3),
            ("myshop.example", 0..2),
            ("example", 0..2),
            ("192.0.2.1:80", 3..4),
            ("[2001:DB8:0::1]:80", 4..5),
            ("[2001:db8::2]", 0..2),
            ("a.shop%2eexample", 0..2),
            (&*long, 0..2),
        ] {
            assert_eq!(index.find(Some(host)), wanted, "{host}");
        }
        assert_eq!(index.find(None), 0..2);
    }

    #[test]
    fn without_hosts_there_is_no_index() {
        assert!(HostIndex::new([None, None].into_iter()).is_none());
        let index = HostIndex::new([Some("a")].into_iter()).unwrap();
        assert!(index.find(Some("b")).is_empty());
    }
}

//! Targets of requests: the parsed URL and the address of its host, looked up once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::str::FromStr;
use std::time::{Duration, Instant as WallInstant};

use posthaste_units::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;

/// Time limit for one of several addresses to accept before the next is tried, for documents and schemas.
const TRIAL: Duration = Duration::from_millis(500);

/// Reasons why a URL cannot be requested.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Not a URL.
    #[error("{text:?} is not a URL ({reason}): write for example http://127.0.0.1:8080/path")]
    NotAUrl {
        /// The text as given.
        text: String,
        /// The parser's error.
        #[source]
        reason: url::ParseError,
    },
    /// A URL with a user, whose password would be in every report.
    #[error(
        "a user in a URL is not sent: leave it out; requests take --user NAME:PASSWORD, and a WSDL that asks for one is read from a file"
    )]
    Credentials,
    /// Neither http nor https.
    #[error("{scheme}:// is not supported: use http:// or https://")]
    Scheme {
        /// The scheme as given.
        scheme: String,
    },
    /// A zone of an IPv6 address that is not an interface of this machine.
    #[error("there is no interface {zone} here, the zone of an IPv6 address ({reason})")]
    Zone {
        /// The zone as given.
        zone: String,
        /// The error of the system.
        #[source]
        reason: io::Error,
    },
    /// A target that this process may not connect to.
    #[error("{0}")]
    NotPermitted(String),
    /// A name without an address.
    #[error(
        "{host}: {}; check the name, or give its address with --resolve {host}:{port}:ADDRESS",
        resolver_words(reason)
    )]
    Unresolved {
        /// The name.
        host: String,
        /// The port.
        port: u16,
        /// The resolver's error.
        #[source]
        reason: io::Error,
    },
}

/// The resolver's words without those of the library around them.
fn resolver_words(reason: &io::Error) -> String {
    let text = reason.to_string();
    let prefix = "failed to lookup address information: ";
    text.strip_prefix(prefix)
        .map_or(text.clone(), str::to_lowercase)
}

/// `--resolve HOST:PORT:ADDRESS`: an address for a name, as in curl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The name to be replaced.
    pub host: String,
    /// The port for which it is replaced.
    pub port: u16,
    /// The address of connections instead.
    pub address: IpAddr,
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let remedy =
            || format!("{text:?}: write HOST:PORT:ADDRESS, for example shop.example:80:127.0.0.1");
        let mut parts = text.splitn(3, ':');
        let mut next = || {
            parts
                .next()
                .filter(|part| !part.is_empty())
                .ok_or_else(remedy)
        };
        let (host, port, address) = (next()?, next()?, next()?);
        let address = without_brackets(address);
        let host = url::Host::parse(host).map_err(|_| remedy())?;
        Ok(Self {
            host: host.to_string(),
            port: port.parse().map_err(|_| remedy())?,
            address: address.parse().map_err(|_| remedy())?,
        })
    }
}

/// Origin of the address of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// This process has looked the name up, or the URL has the address.
    LookedUp,
    /// The plan states it: `--resolve`.
    Stated,
}

/// Decides about the targets of a process.
pub trait TargetPolicy {
    /// Permits connections to these addresses of a host, or gives the reason against it. Called before the first one.
    fn check(
        &self,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        source: AddressSource,
    ) -> Result<(), String>;

    /// True if it may refuse a target.
    fn is_restrictive(&self) -> bool {
        true
    }
}

/// Permits every target.
pub struct AnyTarget;

impl TargetPolicy for AnyTarget {
    fn is_restrictive(&self) -> bool {
        false
    }

    fn check(&self, _: &str, _: u16, _: &[IpAddr], _: AddressSource) -> Result<(), String> {
        Ok(())
    }
}

/// Addresses of names.
pub(crate) struct NameLookUp<'n> {
    /// As the plan states them.
    pub(crate) stated: &'n [Resolve],
    /// As they were looked up before.
    pub(crate) known: &'n [Resolve],
    pub(crate) policy: &'n dyn TargetPolicy,
}

/// A server. Requests to the same origin may share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOrigin {
    /// True if the connection uses TLS.
    pub tls: bool,
    /// Host name or address as written in the URL.
    pub host: String,
    /// Port, by default that of the scheme.
    pub port: u16,
    /// Addresses for connections, one or more.
    pub addresses: Vec<SocketAddr>,
}

impl TargetOrigin {
    /// Returns the look-up in a form that can be reused.
    pub(crate) fn as_resolve(&self) -> impl Iterator<Item = Resolve> + use<'_> {
        self.addresses.iter().map(|address| Resolve {
            host: self.host.clone(),
            port: self.port,
            address: address.ip(),
        })
    }

    /// Returns the first address that accepts a TCP connection, or the first one if none does. A single address is not
    /// tried.
    pub(crate) fn reachable(&self) -> SocketAddr {
        let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, TRIAL).is_ok();
        match &self.addresses[..] {
            [only] => *only,
            several => *several.iter().find(accepts).unwrap_or(&several[0]),
        }
    }

    /// Value of the Host field.
    pub fn authority(&self) -> String {
        let default = if self.tls { 443 } else { 80 };
        match self.port {
            port if port == default => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

/// A URL ready to be requested, with the duration of the name look-up.
#[derive(Clone, Debug)]
pub struct RequestTarget {
    /// The server.
    pub origin: TargetOrigin,
    /// Path and query as in the request line. Template braces stay as written.
    pub path: String,
    /// Duration of the name look-up.
    pub dns: Span,
}

impl RequestTarget {
    /// Parses `text` and looks up its host, unless `resolve` has its address.
    pub fn look_up(text: &str, resolve: &[Resolve]) -> Result<Self, TargetError> {
        let names = NameLookUp {
            stated: resolve,
            known: &[],
            policy: &AnyTarget,
        };
        Self::look_up_with(text, &names)
    }

    /// Parses `text` and looks up its host, unless its address is stated or known.
    pub(crate) fn look_up_with(text: &str, names: &NameLookUp<'_>) -> Result<Self, TargetError> {
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let not_a_url = |reason| TargetError::NotAUrl {
            // The text before an @ may contain a password.
            text: text
                .rsplit_once('@')
                .map_or(text, |(_, host)| host)
                .to_owned(),
            reason,
        };
        let (with_scheme, zone) = without_zone(&with_scheme);
        let url = Url::parse(&with_scheme).map_err(not_a_url)?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            scheme => {
                return Err(TargetError::Scheme {
                    scheme: scheme.to_owned(),
                });
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        let host = url
            .host_str()
            .ok_or_else(|| not_a_url(url::ParseError::EmptyHost))?
            .to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let started = WallInstant::now();
        let mut addresses = names.addresses_of(&host, port)?;
        if let Some(zone) = zone {
            set_zone(&mut addresses, &zone)?;
        }
        Ok(Self {
            origin: TargetOrigin {
                tls,
                host,
                port,
                addresses,
            },
            path: path_as_written(&with_scheme, &url),
            dns: started.elapsed().into(),
        })
    }
}

/// Takes the zone out of an IPv6 address: `fe80::1%eth0`, or `fe80::1%25eth0` (RFC 6874). Servers do not see it.
fn without_zone(url: &str) -> (Cow<'_, str>, Option<String>) {
    let server = url.find("://").map_or(0, |at| at + 3);
    let server_end = url[server..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| server + at);
    let ends = (
        url[server..server_end].find('%'),
        url[server..server_end].find(']'),
    );
    match ends {
        (Some(percent), Some(bracket)) if url[server..].starts_with('[') && percent < bracket => {
            let zone = &url[server + percent + 1..server + bracket];
            let zone = zone
                .strip_prefix("25")
                .filter(|zone| !zone.is_empty())
                .unwrap_or(zone);
            let rest = &url[server + bracket..];
            let without = format!("{}{rest}", &url[..server + percent]);
            (without.into(), Some(zone.to_owned()))
        }
        _ => (url.into(), None),
    }
}

/// Sets the interface of IPv6 addresses.
fn set_zone(addresses: &mut [SocketAddr], zone: &str) -> Result<(), TargetError> {
    let index = || {
        let kind = rustix::net::SocketType::DGRAM;
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET6, kind, None)?;
        rustix::net::netdevice::name_to_index(&socket, zone)
    };
    let index = zone
        .parse()
        .or_else(|_| index())
        .map_err(|errno| TargetError::Zone {
            zone: zone.to_owned(),
            reason: errno.into(),
        })?;
    for address in addresses {
        if let SocketAddr::V6(six) = address {
            six.set_scope_id(index);
        }
    }
    Ok(())
}

/// Returns the path of the URL, without escapes if it contains a template, so that `{{isbn}}` survives.
fn path_as_written(text: &str, url: &Url) -> String {
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    if after_scheme.contains("{{") {
        let start = after_scheme.find(['/', '?', '#']);
        let path = start.map_or("", |at| &after_scheme[at..]);
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        return format!("{slash}{path}");
    }
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// Returns the host of a URL as an address or a name: an IPv6 address without its brackets.
pub(crate) fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

impl NameLookUp<'_> {
    /// Returns the addresses of a host, one or more. All are permitted, and none is connected to.
    fn addresses_of(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, TargetError> {
        let of_host = |names: &[Resolve]| -> Vec<IpAddr> {
            let of_host = names
                .iter()
                .filter(|name| name.host == host && name.port == port);
            of_host.map(|name| name.address).collect()
        };
        let with_port = |addresses: &[IpAddr]| {
            let with_port = addresses.iter().map(|ip| SocketAddr::new(*ip, port));
            usable(with_port.collect())
        };
        let stated = of_host(self.stated);
        if !stated.is_empty() {
            self.permit(host, port, &stated, AddressSource::Stated)?;
            return Ok(with_port(&stated));
        }
        let known = of_host(self.known);
        if !known.is_empty() {
            return Ok(with_port(&known));
        }
        let bare = without_brackets(host);
        if let Ok(address) = bare.parse() {
            self.permit(host, port, &[address], AddressSource::LookedUp)?;
            return Ok(with_port(&[address]));
        }
        let addresses = look_up(bare, port)?;
        let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        self.permit(host, port, &ips, AddressSource::LookedUp)?;
        Ok(usable(addresses))
    }

    fn permit(
        &self,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        source: AddressSource,
    ) -> Result<(), TargetError> {
        let permitted = self.policy.check(host, port, addresses, source);
        permitted.map_err(TargetError::NotPermitted)
    }
}

/// Returns those of several addresses to which this machine has a route, or all if it has none to any. A host without IPv6 cannot use
/// such an address of a name. Nothing is sent: connecting a UDP socket looks up the route.
fn usable(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if addresses.len() == 1 {
        return addresses;
    }
    let has_route = |address: &&SocketAddr| {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0));
        socket.is_ok_and(|socket| socket.connect(address).is_ok())
    };
    let usable: Vec<SocketAddr> = addresses.iter().filter(has_route).copied().collect();
    if usable.is_empty() { addresses } else { usable }
}

/// Looks up a name. It has an address or more, each once.
fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, TargetError> {
    let unresolved = |reason| TargetError::Unresolved {
        host: host.to_owned(),
        port,
        reason,
    };
    let addresses = (host, port).to_socket_addrs().map_err(unresolved)?;
    let mut addresses: Vec<SocketAddr> = addresses.collect();
    let mut known = HashSet::new();
    addresses.retain(|address| known.insert(*address));
    if addresses.is_empty() {
        Err(unresolved(io::Error::other("no address")))
    } else {
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target = RequestTarget::look_up("http://127.0.0.1:81/a?b=c#d", &[]).unwrap();
        assert_eq!(target.path, "/a?b=c");
        assert_eq!(target.origin.authority(), "127.0.0.1:81");
        assert_eq!(RequestTarget::look_up("127.0.0.1", &[]).unwrap().path, "/");
        let six = RequestTarget::look_up("https://[::1]/", &[]).unwrap();
        assert_eq!(
            (six.origin.port, six.origin.authority().as_str()),
            (443, "[::1]")
        );
    }

    #[test]
    fn the_zone_of_an_address_is_its_interface() {
        for url in [
            "http://[fe80::1%25lo]:81/a%20b",
            "http://[fe80::1%lo]:81/a%20b",
        ] {
            let target = RequestTarget::look_up(url, &[]).unwrap();
            let SocketAddr::V6(six) = target.origin.addresses[0] else {
                panic!("{url}")
            };
            assert_eq!((six.scope_id(), six.port()), (1, 81), "{url}");
            assert_eq!(target.origin.authority(), "[fe80::1]:81");
            assert_eq!(target.path, "/a%20b");
        }
        let error = RequestTarget::look_up("http://[fe80::1%nosuch0]/", &[]).unwrap_err();
        assert!(
            error.to_string().contains("no interface nosuch0"),
            "{error}"
        );
        let plain = RequestTarget::look_up("http://127.0.0.1/%5B%25lo%5D", &[]).unwrap();
        assert_eq!(plain.path, "/%5B%25lo%5D");
    }

    #[test]
    fn a_user_in_a_url_is_refused_without_repeating_the_password() {
        for url in ["http://ada:secret@127.0.0.1/", "ada@127.0.0.1"] {
            let refused = RequestTarget::look_up(url, &[]).unwrap_err().to_string();
            assert!(
                refused.contains("--user") && !refused.contains("secret"),
                "{refused}"
            );
        }
    }

    #[test]
    fn templates_survive() {
        let target = RequestTarget::look_up("http://127.0.0.1/page/{{isbn}}?x={{y}}", &[]).unwrap();
        assert_eq!(target.path, "/page/{{isbn}}?x={{y}}");
        let bare = RequestTarget::look_up("http://127.0.0.1?of=/a&x={{y}}#z", &[]).unwrap();
        assert_eq!(bare.path, "/?of=/a&x={{y}}");
    }

    #[test]
    fn names_can_be_given_an_address() {
        let resolve: Resolve = "shop.example:8080:127.0.0.9".parse().unwrap();
        let target = RequestTarget::look_up("http://shop.example:8080/", &[resolve]).unwrap();
        assert_eq!(target.origin.addresses, ["127.0.0.9:8080".parse().unwrap()]);
        assert_eq!(target.origin.authority(), "shop.example:8080");
        assert!("shop.example:127.0.0.1".parse::<Resolve>().is_err());
        let unicode: Resolve = "Bücher.example:80:127.0.0.1".parse().unwrap();
        assert_eq!(unicode.host, "xn--bcher-kva.example");
        let target = RequestTarget::look_up("http://bücher.example/", &[unicode]).unwrap();
        assert_eq!(target.origin.addresses.len(), 1);
    }

    #[test]
    fn of_several_addresses_one_that_answers_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let closed: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let reachable = |addresses: Vec<SocketAddr>| {
            let (tls, host, port) = (false, "shop.example".to_owned(), 80);
            let origin = TargetOrigin {
                tls,
                host,
                port,
                addresses,
            };
            origin.reachable()
        };
        assert_eq!(reachable(vec![closed, open]), open);
        assert_eq!(reachable(vec![closed, closed]), closed);
    }

    /// Permits no address.
    struct Nothing;

    impl TargetPolicy for Nothing {
        fn check(
            &self,
            host: &str,
            _: u16,
            addresses: &[IpAddr],
            source: AddressSource,
        ) -> Result<(), String> {
            Err(format!("{host} at {addresses:?}, {source:?}"))
        }
    }

    #[test]
    fn a_target_is_not_connected_to_unless_it_is_permitted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stated = [Resolve {
            host: "shop.example".to_owned(),
            port,
            address: "127.0.0.1".parse().unwrap(),
        }];
        for (host, source) in [
            ("localhost", "LookedUp"),
            ("127.0.0.1", "LookedUp"),
            ("shop.example", "Stated"),
        ] {
            let names = NameLookUp {
                stated: &stated,
                known: &[],
                policy: &Nothing,
            };
            let url = format!("http://{host}:{port}/");
            let refused = RequestTarget::look_up_with(&url, &names).unwrap_err();
            let message = refused.to_string();
            assert!(
                message.contains(host) && message.contains(source),
                "{message}"
            );
        }
        let nobody = listener.accept().unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn refusals_name_the_remedy() {
        let refused = |text| RequestTarget::look_up(text, &[]).unwrap_err().to_string();
        assert!(refused("ftp://127.0.0.1/").contains("http://"));
        assert!(refused("http://").contains("127.0.0.1:8080"));
        assert!(refused("http://no-such-name.invalid/").contains("--resolve"));
    }
}

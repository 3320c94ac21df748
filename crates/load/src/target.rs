//! Targets of requests: the parsed URL and the address of its host, looked up once.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::{Duration, Instant as WallInstant};

use posthaste_units::Span;
use thiserror::Error;
use url::Url;

/// Time limit for one of several addresses to accept before the next is tried.
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
    /// A name without an address.
    #[error(
        "{host}: {reason}; check the name, or give its address with --resolve {host}:{port}:ADDRESS"
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

/// `--resolve HOST:PORT:ADDRESS`: an address for a name, as in curl.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: port.parse().map_err(|_| remedy())?,
            address: address.parse().map_err(|_| remedy())?,
        })
    }
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
    /// Address for connections.
    pub address: SocketAddr,
}

impl TargetOrigin {
    /// Returns the look-up in a form that can be reused.
    pub(crate) fn as_resolve(&self) -> Resolve {
        Resolve {
            host: self.host.clone(),
            port: self.port,
            address: self.address.ip(),
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
        let address = address_of(&host, port, resolve)?;
        Ok(Self {
            origin: TargetOrigin {
                tls,
                host,
                port,
                address,
            },
            path: path_as_written(&with_scheme, &url),
            dns: started.elapsed().into(),
        })
    }
}

/// Returns the path of the URL, without escapes if it contains a template, so that `{{isbn}}` survives.
fn path_as_written(text: &str, url: &Url) -> String {
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    if after_scheme.contains("{{") {
        let path = after_scheme.find(['/', '?', '#']);
        let path = path.map_or("", |at| &after_scheme[at..]);
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

fn address_of(host: &str, port: u16, resolve: &[Resolve]) -> Result<SocketAddr, TargetError> {
    let given = resolve.iter().find(|r| r.host == host && r.port == port);
    if let Some(given) = given {
        return Ok(SocketAddr::new(given.address, port));
    }
    let bare = without_brackets(host);
    if let Ok(address) = bare.parse() {
        return Ok(SocketAddr::new(address, port));
    }
    let unresolved = |reason| TargetError::Unresolved {
        host: host.to_owned(),
        port,
        reason,
    };
    let addresses: Vec<SocketAddr> = (bare, port)
        .to_socket_addrs()
        .map_err(unresolved)?
        .collect();
    reachable(&addresses).ok_or_else(|| unresolved(io::Error::other("no address")))
}

/// Returns the first of several addresses that accepts a connection, because `localhost` is often `::1` too. If none
/// does, the first. A single address is not tried.
fn reachable(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let takes = |address: &&SocketAddr| TcpStream::connect_timeout(address, TRIAL).is_ok();
    match addresses {
        [] => None,
        [only] => Some(*only),
        several => several.iter().find(takes).or(several.first()).copied(),
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
        assert_eq!(target.origin.address, "127.0.0.9:8080".parse().unwrap());
        assert_eq!(target.origin.authority(), "shop.example:8080");
        assert!("shop.example:127.0.0.1".parse::<Resolve>().is_err());
    }

    #[test]
    fn of_several_addresses_one_that_answers_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let closed: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(reachable(&[closed, open]), Some(open));
        assert_eq!(reachable(&[closed, closed]), Some(closed));
        assert_eq!(reachable(&[]), None);
    }

    #[test]
    fn refusals_name_the_remedy() {
        let refused = |text| RequestTarget::look_up(text, &[]).unwrap_err().to_string();
        assert!(refused("ftp://127.0.0.1/").contains("http://"));
        assert!(refused("http://").contains("127.0.0.1:8080"));
        assert!(refused("http://no-such-name.invalid/").contains("--resolve"));
    }
}

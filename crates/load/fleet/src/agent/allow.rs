//! Permitted targets of an agent: the list of `--allow HOST[:PORT]|CIDR`. Loopback only by default.
//!
//! An entry with an address or a network permits addresses. An entry with a name permits that host at the addresses to
//! which the agent resolves it. Addresses that the conductor states (`--resolve`) need an entry with a network, because
//! a conductor could otherwise state any address for a permitted name.
//!
//! The list is the consent of the agent's owner, not of the target's.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use posthaste_load::{AddressSource, TargetPolicy};
use posthaste_serve::Networks;
use thiserror::Error;

/// The permitted targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList(Vec<AllowEntry>);

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowEntry {
    /// As written.
    text: String,
    hosts: AllowedHosts,
    /// Every port if there is none.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedHosts {
    /// In lower case, without a final dot.
    Name(String),
    Addresses(Networks),
}

/// A text that is no entry.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} cannot be allowed: write a host, HOST:PORT, an address, [IPv6]:PORT, or a network such as 10.0.0.0/8"
)]
pub struct AllowError(String);

/// A target that is not permitted.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotAllowed {
    /// Nothing to connect to.
    #[error("{0} has no address")]
    NoAddress(String),
    /// A host without an entry.
    #[error("{host}:{port} is not allowed here; the agent allows {list}")]
    Host {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The list.
        list: String,
    },
    /// An address without an entry.
    #[error("{address} of {host}:{port} is not allowed here; the agent allows {list}")]
    Address {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The address.
        address: IpAddr,
        /// The list.
        list: String,
    },
}

impl TargetPolicy for AllowList {
    fn check(
        &self,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        source: AddressSource,
    ) -> Result<(), String> {
        let checked = Self::check(self, host, port, addresses, source);
        checked.map_err(|error| error.to_string())
    }
}

impl Default for AllowList {
    fn default() -> Self {
        let loopback = ["127.0.0.0/8", "::1"].map(|text| text.parse().expect("a network"));
        Self(loopback.into())
    }
}

impl AllowList {
    /// A list of these entries. Without entries it is the default.
    pub fn new(entries: Vec<AllowEntry>) -> Self {
        if entries.is_empty() {
            Self::default()
        } else {
            Self(entries)
        }
    }

    /// Checks a target: the host, and every address to which a connection may be opened.
    pub fn check(
        &self,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        source: AddressSource,
    ) -> Result<(), NotAllowed> {
        let name = host_name(host);
        let literal = address(&name);
        let by_name = literal.is_none() && self.allows_name(&name, port);
        if addresses.is_empty() {
            return Err(NotAllowed::NoAddress(host.to_owned()));
        }
        if literal.is_some_and(|address| !self.allows_address(address, port)) {
            return Err(NotAllowed::Host {
                host: host.to_owned(),
                port,
                list: self.to_string(),
            });
        }
        if by_name && source == AddressSource::LookedUp {
            return Ok(());
        }
        let outside = addresses
            .iter()
            .find(|address| !self.allows_address(**address, port));
        match outside {
            None => Ok(()),
            Some(outside) => Err(NotAllowed::Address {
                host: host.to_owned(),
                port,
                address: *outside,
                list: self.to_string(),
            }),
        }
    }

    fn allows_name(&self, name: &str, port: u16) -> bool {
        self.at_port(port).any(|hosts| match hosts {
            AllowedHosts::Name(allowed) => allowed == name,
            AllowedHosts::Addresses(_) => false,
        })
    }

    fn allows_address(&self, address: IpAddr, port: u16) -> bool {
        self.at_port(port).any(|hosts| match hosts {
            AllowedHosts::Name(_) => false,
            AllowedHosts::Addresses(networks) => networks.contains(address),
        })
    }

    fn at_port(&self, port: u16) -> impl Iterator<Item = &AllowedHosts> {
        let entries = self.0.iter();
        let entries = entries.filter(move |entry| entry.port.is_none_or(|own| own == port));
        entries.map(|entry| &entry.hosts)
    }
}

impl FromStr for AllowEntry {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let entry = |hosts, port| Self {
            text: text.to_owned(),
            hosts,
            port,
        };
        if let Some(networks) = Networks::one(text) {
            return Ok(entry(AllowedHosts::Addresses(networks), None));
        }
        let error = || AllowError(text.to_owned());
        let (host, port) = match text.rsplit_once(':') {
            None => (text, None),
            Some((host, port)) => (host, Some(read_port(port).ok_or_else(error)?)),
        };
        let is_network = host.contains('/');
        let inside = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let hosts = match inside {
            Some(inside) => Networks::one(inside).filter(|_| inside.contains(':')),
            None => Networks::one(host).filter(|_| !host.contains(':')),
        };
        match hosts {
            Some(networks) if !is_network => Ok(entry(AllowedHosts::Addresses(networks), port)),
            None if is_name(host) => Ok(entry(AllowedHosts::Name(host_name(host)), port)),
            _ => Err(error()),
        }
    }
}

/// A port in its only form: no sign and no leading zero.
fn read_port(text: &str) -> Option<u16> {
    let port = text.parse::<u16>().ok()?;
    (port > 0 && port.to_string() == text).then_some(port)
}

/// A host in the form that is compared.
fn host_name(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.to_ascii_lowercase()
}

/// The address of a host that is one, with or without brackets.
fn address(host: &str) -> Option<IpAddr> {
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = inside.unwrap_or(host).parse::<IpAddr>().ok()?;
    Some(address.to_canonical())
}

/// True for names of hosts. A last label of digits alone is an unusual form of an address, and is none.
fn is_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_part)
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253 && !is_number && host.split('.').all(is_label)
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|entry| &*entry.text).collect();
        f.write_str(&texts.join(", "))
    }
}

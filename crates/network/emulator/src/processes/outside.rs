//! A host outside the emulated network, and its port.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use thiserror::Error;

/// A host and its port, in the form `example.org:80` or `[::1]:80`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideHost {
    pub(crate) text: String,
    pub(crate) port: u16,
}

/// Error: a text without a host or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write a host and a port, for example example.org:80 or [::1]:80")]
pub struct InvalidHost;

impl FromStr for OutsideHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let port = text
            .rsplit_once(':')
            .filter(|(host, _)| !host.is_empty())
            .and_then(|(_, port)| port.parse().ok())
            .filter(|port| *port != 0);
        let text = text.to_owned();
        let port = port.ok_or(InvalidHost)?;
        Ok(Self { text, port })
    }
}

impl OutsideHost {
    /// Addresses of the name, as this machine resolves it.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(self.text.to_socket_addrs()?.collect())
    }
}

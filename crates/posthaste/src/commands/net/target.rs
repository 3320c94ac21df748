//! An outside host and its port, as `--to` takes them.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use crate::commands::Failure;

/// HOST:PORT.
#[derive(Clone, Debug)]
pub(super) struct Target {
    text: String,
    pub(super) port: u16,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = text
            .rsplit_once(':')
            .filter(|(host, _)| !host.is_empty())
            .and_then(|(_, port)| port.parse().ok())
            .filter(|port| *port != 0);
        let text = text.to_owned();
        match port {
            Some(port) => Ok(Self { text, port }),
            None => Err("write a host and a port, for example example.org:80 or [::1]:80".into()),
        }
    }
}

impl Target {
    /// Addresses of the name, as this machine resolves it.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let found = self.text.to_socket_addrs();
        let found = found.map_err(|error| Failure::run(format!("--to {}: {error}", self.text)))?;
        Ok(found.collect())
    }
}

//! Addresses of a control: a TCP port of this machine, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Address of a control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// A loopback address. Port 0 selects a free one.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// Error for a text that is no address of a control.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlAddressError {
    /// Neither an address with its port nor a path.
    #[error("{0:?} is not an address of a control: write 127.0.0.1:PORT, [::1]:PORT or unix:PATH")]
    Form(String),
    /// An address that others can reach.
    #[error(
        "{0}: a control listens at loopback only, since any client that reaches it can change the run: \
         write 127.0.0.1:{port} or unix:PATH", port = .0.port()
    )]
    NotLoopback(SocketAddr),
}

impl FromStr for ControlAddress {
    type Err = ControlAddressError;

    /// Parses `127.0.0.1:PORT`, also after `http://`, or `unix:PATH`.
    fn from_str(text: &str) -> Result<Self, ControlAddressError> {
        let wrong = || ControlAddressError::Form(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let has_path = !path.is_empty() && !path.contains('\0');
            return has_path.then(|| Self::Unix(path.into())).ok_or_else(wrong);
        }
        let host = text.strip_prefix("http://").unwrap_or(text);
        let host = host.strip_suffix('/').unwrap_or(host);
        let address = match host.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => host.to_owned(),
        };
        let address: SocketAddr = address.parse().map_err(|_| wrong())?;
        if address.ip().is_loopback() {
            Ok(Self::Tcp(address))
        } else {
            Err(ControlAddressError::NotLoopback(address))
        }
    }
}

impl fmt::Display for ControlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_reads_and_refuses_with_the_remedy() {
        for text in [
            "http://127.0.0.1:0",
            "http://[::1]:8000",
            "unix:/run/x y",
            "unix:here",
        ] {
            assert_eq!(text.parse::<ControlAddress>().unwrap().to_string(), text);
        }
        for text in ["127.0.0.1:9", "localhost:9", "http://localhost:9/"] {
            let address: ControlAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), "http://127.0.0.1:9");
        }
        for text in [
            "",
            "unix:",
            "9000",
            "127.0.0.1",
            "https://127.0.0.1:9",
            "0.0.0.0:9",
            "10.0.0.1:9",
        ] {
            let error = text.parse::<ControlAddress>().unwrap_err().to_string();
            assert!(
                error.contains("127.0.0.1:") && error.contains("unix:PATH"),
                "{error}"
            );
        }
    }
}

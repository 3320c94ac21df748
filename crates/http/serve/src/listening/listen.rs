//! Listening sockets. The accept queue is part of a service's capacity, so its length is an explicit argument.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

/// Reasons why listening failed.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another process listens on the address.
    #[error(
        "{0} is in use by another process: stop it (ss -ltnp shows which), or choose another port, or port 0 for any free one"
    )]
    InUse(SocketAddr),
    /// Another process has the UDP port.
    #[error(
        "UDP port {port} of {ip}, which HTTP/3 needs, is in use by another process: stop it (ss -lnup shows which), \
         or choose another port, or leave HTTP/3 out",
        ip = .0.ip(), port = .0.port()
    )]
    UdpInUse(SocketAddr),
    /// A port below 1024 without permission.
    #[error(
        "not allowed to listen on {0}: choose a port from 1024 on, or give the program CAP_NET_BIND_SERVICE"
    )]
    Denied(SocketAddr),
    /// No interface has this address.
    #[error(
        "{0} is no address of this machine: use 127.0.0.1, 0.0.0.0, [::] or one that `ip address` lists"
    )]
    NotOurs(SocketAddr),
    /// Any other error.
    #[error("cannot listen on {address}: {error}")]
    Other {
        /// The requested address.
        address: SocketAddr,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
}

/// A text that is not a listening address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no address to listen on: write an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or \
     localhost:8080, or :8080 for every IPv4 address of this machine"
)]
pub struct AddressError(String);

/// Parses a listening address: an IP address and a port, `localhost:PORT` (127.0.0.1), or `:PORT` (0.0.0.0).
pub fn listen_address(text: &str) -> Result<SocketAddr, AddressError> {
    let error = || AddressError(text.to_owned());
    let (ip, port) = match text.rsplit_once(':') {
        Some(("", port)) => (Ipv4Addr::UNSPECIFIED, port),
        Some(("localhost", port)) => (Ipv4Addr::LOCALHOST, port),
        _ => return text.parse().map_err(|_| error()),
    };
    let port: u16 = port.parse().map_err(|_| error())?;
    Ok((ip, port).into())
}

/// Listens on `address` with an accept queue of `backlog`.
///
/// Linux holds `backlog` + 1 connections, but at most `net.core.somaxconn` + 1. The socket is non-blocking, may be
/// bound again while old connections linger, and passes TCP_NODELAY to accepted connections.
pub fn listen(address: SocketAddr, backlog: u32) -> Result<TcpListener, ListenError> {
    let open = || -> io::Result<TcpListener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(socket.into())
    };
    open().map_err(|error| with_address(error, address))
}

/// Opens a UDP socket on `address`, for QUIC. The port is that of a TCP socket, and no other process has it.
pub fn listen_udp(address: SocketAddr) -> Result<UdpSocket, ListenError> {
    let open = || -> io::Result<UdpSocket> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket.into())
    };
    open().map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::UdpInUse(address),
        _ => with_address(error, address),
    })
}

pub(crate) fn with_address(error: io::Error, address: SocketAddr) -> ListenError {
    match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address),
        io::ErrorKind::PermissionDenied => ListenError::Denied(address),
        io::ErrorKind::AddrNotAvailable => ListenError::NotOurs(address),
        _ => ListenError::Other { address, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_named_with_the_remedy() {
        let first = listen(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let address = first.local_addr().unwrap();
        let error = listen(address, 8).unwrap_err();
        assert!(matches!(error, ListenError::InUse(a) if a == address));
        assert!(error.to_string().contains("ss -ltnp"));
    }

    #[test]
    fn a_taken_udp_port_is_named_with_the_remedy() {
        let tcp = listen(([127, 0, 0, 1], 0).into(), 8).unwrap();
        let address = tcp.local_addr().unwrap();
        let first = listen_udp(address).unwrap();
        assert_eq!(first.local_addr().unwrap(), address);
        let error = listen_udp(address).unwrap_err();
        assert!(matches!(error, ListenError::UdpInUse(a) if a == address));
        assert!(error.to_string().contains("ss -lnup"));
    }

    #[test]
    fn an_address_may_be_short() {
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:8080", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
            (":0", "0.0.0.0:0"),
        ] {
            assert_eq!(listen_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            ":",
            "8080",
            "localhost",
            "localhost:",
            ":70000",
            "host:80",
            "::1:80x",
        ] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_of_another_machine_is_named() {
        let error = listen(([192, 0, 2, 1], 0).into(), 8).unwrap_err();
        assert!(matches!(error, ListenError::NotOurs(_)), "{error}");
    }
}

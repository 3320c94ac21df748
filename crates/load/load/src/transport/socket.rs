//! The system calls of one connection. None of them blocks. Those of QUIC's datagrams are in `quic::datagrams`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use posthaste_serve::tcp_info;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::outcome::Outcome;

/// Result of starting a connection attempt.
pub(crate) enum ConnectAttempt {
    /// A SYN was sent, or a UDP socket is ready for the first datagram.
    Started(OwnedFd),
    /// Refused before the call returned.
    Refused,
    /// No route to the host.
    Unreachable(Errno),
    /// This machine lacks descriptors, ports or memory.
    ClientFailed(Errno),
}

impl ConnectAttempt {
    /// Outcome and reason of an attempt that failed at once.
    pub(crate) fn outcome(self) -> (Outcome, String) {
        let (outcome, errno) = match self {
            Self::Refused => (Outcome::Refused, Errno::CONNREFUSED),
            Self::Unreachable(errno) => (Outcome::ConnectAborted, errno),
            Self::ClientFailed(errno) => (Outcome::ClientFailed, errno),
            Self::Started(_) => unreachable!("an attempt that was started has not failed"),
        };
        (outcome, connect_failure(errno))
    }
}

/// Returns the outcome of an attempt that was started and has failed.
pub(crate) const fn connect_outcome(errno: Errno) -> Outcome {
    match errno {
        Errno::CONNREFUSED | Errno::CONNRESET => Outcome::Refused,
        Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM => Outcome::ClientFailed,
        _ => Outcome::ConnectAborted,
    }
}

/// True if a connection failed because of the address, and not of this machine.
pub(crate) const fn is_of_address(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Refused | Outcome::ConnectAborted)
}

/// Describes the error of a connection attempt, with the remedy if this machine is the cause.
pub(crate) fn connect_failure(errno: Errno) -> String {
    match errno {
        Errno::ADDRNOTAVAIL => format!(
            "{errno}: every local port is in use; keep connections with --connection keep-alive, or widen \
             net.ipv4.ip_local_port_range"
        ),
        Errno::MFILE | Errno::NFILE => {
            format!("{errno}; raise the limit of open files (ulimit -n)")
        }
        _ => errno.to_string(),
    }
}

/// Starts a connection to `address`, from a local port or from any for 0.
pub(crate) fn connect(address: &SocketAddr, local_port: u16, no_delay: bool) -> ConnectAttempt {
    let socket = match open(address, local_port, SocketType::STREAM) {
        Ok(socket) => socket,
        Err(errno) => return ConnectAttempt::ClientFailed(errno),
    };
    if no_delay && let Err(errno) = sockopt::set_tcp_nodelay(&socket, true) {
        return ConnectAttempt::ClientFailed(errno);
    }
    begin(socket, address)
}

/// Opens a UDP socket for a connection to `address`. It receives datagrams of this address only, and errors that ICMP
/// reports about it (udp(7)). Nothing is sent.
pub(crate) fn connect_datagrams(address: &SocketAddr, local_port: u16) -> ConnectAttempt {
    match open(address, local_port, SocketType::DGRAM) {
        Ok(socket) => begin(socket, address),
        Err(errno) => ConnectAttempt::ClientFailed(errno),
    }
}

fn open(address: &SocketAddr, local_port: u16, kind: SocketType) -> Result<OwnedFd, Errno> {
    let (family, any) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    if local_port != 0 {
        rustix::net::bind(&socket, &SocketAddr::new(any, local_port))?;
    }
    Ok(socket)
}

fn begin(socket: OwnedFd, address: &SocketAddr) -> ConnectAttempt {
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => ConnectAttempt::Started(socket),
        Err(Errno::CONNREFUSED) => ConnectAttempt::Refused,
        Err(errno @ (Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::TIMEDOUT)) => {
            ConnectAttempt::Unreachable(errno)
        }
        Err(errno) => ConnectAttempt::ClientFailed(errno),
    }
}

/// Returns the number of bytes that the kernel accepted. `Err(AGAIN)` if it has no space or is still connecting.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
}

/// Returns the number of bytes read. 0 is the end of the stream.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, length)| length)
}

/// Returns the error of a connection attempt, if it failed.
pub(crate) fn take_error(socket: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno),
    }
}

/// Closes with a reset, or silently if only a SYN was sent. Leaves no TIME_WAIT.
pub(crate) fn abort(socket: OwnedFd) {
    // A failure needs no handling: the connection is then closed in the ordinary way.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    drop(socket);
}

/// True if the peer's kernel has acknowledged everything sent, by TCP_INFO.
///
/// If the last packet of a handshake met a full accept queue, the connection looks established on this side, and
/// nothing sent on it is ever acknowledged.
pub(crate) fn is_acknowledged(socket: &OwnedFd) -> bool {
    tcp_info(socket).is_none_or(|info| info.unacknowledged == 0)
}

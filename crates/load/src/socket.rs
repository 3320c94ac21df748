//! The system calls of one connection, none of which ever waits.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// How an attempt to connect began.
pub(crate) enum Attempt {
    /// A SYN is on its way.
    Started(OwnedFd),
    /// Refused before the call returned.
    Refused,
    /// No way to the host.
    Unreachable(Errno),
    /// This machine cannot: descriptors, ports or memory.
    ClientFailed(Errno),
}

/// Begins to connect to `address`.
pub(crate) fn connect(address: &SocketAddr, no_delay: bool) -> Attempt {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = match rustix::net::socket_with(family, SocketType::STREAM, flags, None) {
        Ok(socket) => socket,
        Err(errno) => return Attempt::ClientFailed(errno),
    };
    if no_delay && let Err(errno) = sockopt::set_tcp_nodelay(&socket, true) {
        return Attempt::ClientFailed(errno);
    }
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Attempt::Started(socket),
        Err(Errno::CONNREFUSED) => Attempt::Refused,
        Err(errno @ (Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::TIMEDOUT)) => {
            Attempt::Unreachable(errno)
        }
        Err(errno) => Attempt::ClientFailed(errno),
    }
}

/// Bytes the kernel took; `Err(AGAIN)` when it has no room or is still connecting.
pub(crate) fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
}

/// Bytes that were there; 0 is the end of the stream.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, length)| length)
}

/// The error a connection attempt ended with, if it did.
pub(crate) fn take_error(socket: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno),
    }
}

/// Closes with a reset (or silently, when only a SYN was sent), leaving no TIME_WAIT behind.
pub(crate) fn abort(socket: OwnedFd) {
    // Nothing can be done about a failure, and an ordinary close is what happens then.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    drop(socket);
}

/// Whether the peer's kernel has acknowledged everything sent, by TCP_INFO.
///
/// A handshake whose last packet met a full accept queue looks established from here, and
/// nothing sent on it is ever acknowledged.
pub(crate) fn is_acknowledged(socket: &OwnedFd) -> bool {
    // SAFETY: tcp_info is plain old data, for which all zeroes is a valid value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `info`, which outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    result != 0 || info.tcpi_unacked == 0
}

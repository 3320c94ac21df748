//! The socket of a connection, for queries beside its byte stream.

use std::io;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use posthaste_units::Dscp;

use crate::socket::mark::set_mark;
use crate::socket::queues;
use crate::socket::simulated::SimulatedSocket;
use crate::socket::tcp_info::{NetworkPath, tcp_info};

/// The socket of an open connection. Its owner does not use it after the close.
pub(crate) enum SocketHandle {
    /// A descriptor.
    Kernel(RawFd),
    Simulated(Arc<dyn SimulatedSocket>),
}

impl SocketHandle {
    /// Bytes written and not acknowledged by the peer.
    pub(crate) fn unacknowledged(&self) -> u32 {
        match self {
            Self::Kernel(socket) => queues::unacknowledged(borrow(*socket)),
            Self::Simulated(socket) => socket.unacknowledged(),
        }
    }

    /// Received bytes that were not read.
    pub(crate) fn unread(&self) -> u64 {
        match self {
            Self::Kernel(socket) => queues::unread(borrow(*socket)),
            Self::Simulated(socket) => socket.unread(),
        }
    }

    /// Marks all further packets to `peer`.
    pub(crate) fn mark(&self, peer: IpAddr, mark: Dscp) -> io::Result<()> {
        match self {
            Self::Kernel(socket) => set_mark(borrow(*socket), peer, mark),
            Self::Simulated(socket) => socket.mark(mark),
        }
    }

    /// The network path, if it is known.
    pub(crate) fn path(&self) -> Option<NetworkPath> {
        match self {
            Self::Kernel(socket) => tcp_info(borrow(*socket))?.path(),
            Self::Simulated(socket) => socket.path(),
        }
    }
}

fn borrow<'a>(socket: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the transport has the connection forget the socket before it closes it, on the same thread, and each
    // borrow ends with the call that makes it.
    unsafe { BorrowedFd::borrow_raw(socket) }
}

//! A listening socket of a server, and the choice of the next connection among several.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{TcpListener, TcpStream};

/// A listening socket of a server.
#[derive(Debug)]
pub struct Listener {
    /// The socket, from [`crate::listen`].
    pub socket: std::net::TcpListener,
    /// Plain HTTP, even if the server has a certificate.
    pub is_plain: bool,
}

/// The listeners of one thread.
pub(crate) struct Listeners {
    /// Sockets, and true for plain HTTP.
    sockets: Vec<(TcpListener, bool)>,
    /// The listener to try first, so that a busy one does not starve the others.
    next: Cell<usize>,
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
    pub(crate) is_plain: bool,
}

impl Listener {
    /// Returns another handle of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            is_plain: self.is_plain,
        })
    }
}

impl Listeners {
    /// Registers the sockets with the runtime of this thread.
    pub(crate) fn new(listeners: Vec<Listener>) -> io::Result<Self> {
        let registered = listeners.into_iter().map(|listener| {
            let socket = TcpListener::from_std(listener.socket)?;
            Ok((socket, listener.is_plain))
        });
        Ok(Self {
            sockets: registered.collect::<io::Result<_>>()?,
            next: Cell::new(0),
        })
    }

    /// Accepts the next connection of any listener.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        poll_fn(|cx| {
            let count = self.sockets.len();
            for turn in 0..count {
                let index = (self.next.get() + turn) % count;
                let (socket, is_plain) = &self.sockets[index];
                if let Poll::Ready(accepted) = socket.poll_accept(cx) {
                    self.next.set((index + 1) % count);
                    return Poll::Ready(accepted.map(|(stream, address)| Accepted {
                        stream,
                        address,
                        is_plain: *is_plain,
                    }));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// True if a connection waits to be accepted.
    pub(crate) fn is_awaited(&self) -> bool {
        let sockets = self.sockets.iter();
        let mut sockets: Vec<_> = sockets
            .map(|(socket, _)| PollFd::new(socket, PollFlags::IN))
            .collect();
        poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

//! A listening socket of a server, and the choice of the next connection among several.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::TcpListener;

use crate::environment;
use crate::listening::listen::{ListenError, listen, with_address};
use crate::socket::simulated::SimulatedListener;
use crate::socket::stream::Stream;

/// A listener of a server.
pub struct Listener {
    kind: ListenerKind<std::net::TcpListener>,
    /// Plain HTTP, even if the server has a certificate.
    pub is_plain: bool,
}

enum ListenerKind<S> {
    Socket(S),
    Simulated(Arc<dyn SimulatedListener>),
}

/// The listeners of one thread.
pub(crate) struct Listeners {
    /// With true for plain HTTP.
    listeners: Vec<(ListenerKind<TcpListener>, bool)>,
    /// The listener to try first, so that a busy one does not starve the others.
    next: Cell<usize>,
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: Stream,
    pub(crate) address: SocketAddr,
    pub(crate) is_plain: bool,
}

impl Listener {
    /// Listens on `address`, like [`listen`]. In an environment, on its network.
    pub fn open(address: SocketAddr, backlog: u32, is_plain: bool) -> Result<Self, ListenError> {
        let Some(environment) = environment::current() else {
            return Ok(Self::new(listen(address, backlog)?, is_plain));
        };
        let listener = environment.listen(address, backlog);
        let listener = listener.map_err(|error| with_address(error, address))?;
        let kind = ListenerKind::Simulated(listener);
        Ok(Self { kind, is_plain })
    }

    /// A listening socket, from [`listen`].
    pub const fn new(socket: std::net::TcpListener, is_plain: bool) -> Self {
        let kind = ListenerKind::Socket(socket);
        Self { kind, is_plain }
    }

    /// The address on which it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.kind {
            ListenerKind::Socket(socket) => socket.local_addr(),
            ListenerKind::Simulated(listener) => Ok(listener.address()),
        }
    }

    /// Returns another handle of the same listener.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let kind = match &self.kind {
            ListenerKind::Socket(socket) => ListenerKind::Socket(socket.try_clone()?),
            ListenerKind::Simulated(listener) => ListenerKind::Simulated(listener.clone()),
        };
        let is_plain = self.is_plain;
        Ok(Self { kind, is_plain })
    }
}

impl Listeners {
    /// Registers the sockets with the runtime of this thread.
    pub(crate) fn new(listeners: Vec<Listener>) -> io::Result<Self> {
        let registered = listeners.into_iter().map(|listener| {
            let kind = match listener.kind {
                ListenerKind::Socket(socket) => {
                    ListenerKind::Socket(TcpListener::from_std(socket)?)
                }
                ListenerKind::Simulated(listener) => ListenerKind::Simulated(listener),
            };
            Ok((kind, listener.is_plain))
        });
        Ok(Self {
            listeners: registered.collect::<io::Result<_>>()?,
            next: Cell::new(0),
        })
    }

    /// Accepts the next connection of any listener.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        poll_fn(|cx| {
            let count = self.listeners.len();
            for step in 0..count {
                let index = (self.next.get() + step) % count;
                let (listener, is_plain) = &self.listeners[index];
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
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
        self.listeners.iter().any(|(listener, _)| match listener {
            ListenerKind::Socket(socket) => is_readable(socket),
            ListenerKind::Simulated(listener) => listener.is_awaited(),
        })
    }
}

impl ListenerKind<TcpListener> {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, SocketAddr)>> {
        match self {
            Self::Socket(socket) => {
                let accepted = ready!(socket.poll_accept(cx));
                Poll::Ready(accepted.map(|(stream, address)| (stream.into(), address)))
            }
            Self::Simulated(listener) => {
                let accepted = ready!(listener.poll_accept(cx));
                Poll::Ready(accepted.map(|(stream, address)| (stream.into(), address)))
            }
        }
    }
}

/// Asks the kernel without a wait.
fn is_readable(socket: &TcpListener) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

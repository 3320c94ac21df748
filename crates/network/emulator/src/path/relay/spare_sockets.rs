//! Spare sockets in the server's network namespace, created in advance.
//!
//! A socket belongs to the network namespace of the thread that created it, regardless of the thread that binds it. The
//! emulator's thread can therefore open one at a new destination without a change of namespace and without waiting.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::namespaces::host::has_ipv6;

/// Number of spare sockets, and so of new destinations that can arrive at once.
const READY: usize = 64;

/// Time before the next attempt to create a socket.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest wait for a spare socket when many destinations arrive at once. Packets stand still meanwhile.
pub(super) const WAIT: Duration = Duration::from_millis(2);

/// Protocol of a socket.
#[derive(Clone, Copy, Debug)]
pub(super) enum SocketKind {
    Tcp,
    Udp,
}

/// Producer of spare sockets.
#[derive(Clone, Debug)]
pub(super) struct SocketProducer {
    kind: SocketKind,
    sockets: SyncSender<Socket>,
}

/// A producer of sockets of this kind, and its receiving end.
pub(super) fn spare_sockets(kind: SocketKind) -> (SocketProducer, SpareSockets) {
    let (sockets, spare) = sync_channel(READY);
    (SocketProducer { kind, sockets }, SpareSockets::new(spare))
}

impl SocketProducer {
    /// Fills the channel, and keeps it full from a thread of its own until the receiver is dropped.
    pub(super) fn serve(self) -> io::Result<()> {
        // Filled here, so that the first packets find sockets however late that thread is scheduled.
        for socket in 0..READY {
            match make(self.kind) {
                // The channel has free capacity: no other code fills it.
                Ok(made) => drop(self.sockets.try_send(made)),
                // An error of the first socket will affect all others.
                Err(error) if socket == 0 => return Err(error),
                Err(_) => break,
            }
        }
        let fill = move || {
            loop {
                let Ok(socket) = make(self.kind) else {
                    // Out of descriptors until a connection ends. The opener counts packets without a socket and
                    // tries again.
                    thread::sleep(PAUSE);
                    continue;
                };
                if self.sockets.send(socket).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("sockets".to_owned())
            .spawn(fill)?;
        Ok(())
    }
}

/// Receiving end of spare sockets.
pub(super) struct SpareSockets {
    spare: Receiver<Socket>,
    /// The last wait for a socket failed.
    is_dry: bool,
}

impl SpareSockets {
    pub(super) fn new(spare: Receiver<Socket>) -> Self {
        Self {
            spare,
            is_dry: false,
        }
    }

    /// The next spare socket. Waits only if the last wait succeeded.
    pub(super) fn take(&mut self) -> Option<Socket> {
        let socket = if self.is_dry {
            self.spare.try_recv().ok()
        } else {
            self.spare.recv_timeout(WAIT).ok()
        };
        self.is_dry = socket.is_none();
        socket
    }
}

/// A socket that can be bound to any address of either IP version.
pub(super) fn make(kind: SocketKind) -> io::Result<Socket> {
    let (kind, protocol) = match kind {
        SocketKind::Tcp => (Type::STREAM, Protocol::TCP),
        SocketKind::Udp => (Type::DGRAM, Protocol::UDP),
    };
    if !has_ipv6() {
        return Socket::new(Domain::IPV4, kind, Some(protocol));
    }
    let socket = Socket::new(Domain::IPV6, kind, Some(protocol))?;
    socket.set_only_v6(false)?;
    // IPv6 checks the address against the own addresses before it checks for a local route.
    socket.set_freebind_v6(true)?;
    Ok(socket)
}

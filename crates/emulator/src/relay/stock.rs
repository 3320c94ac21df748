//! Spare sockets in the server's network namespace, created in advance.
//!
//! A socket belongs to the network namespace of the thread that created it, regardless of the thread that binds it. The
//! emulator's thread can therefore open one at a new destination without a change of namespace and without waiting.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::host::has_ipv6;

/// Number of spare sockets, and so of new destinations that can arrive at once.
const READY: usize = 64;

/// Time before the next attempt to create a socket.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Tcp,
    Udp,
}

/// The producer of spare sockets.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    kind: Kind,
    shelf: SyncSender<Socket>,
}

pub(super) fn stock(kind: Kind) -> (Stock, Receiver<Socket>) {
    let (shelf, spare) = sync_channel(READY);
    (Stock { kind, shelf }, spare)
}

impl Stock {
    /// Fills the channel, and keeps it full from a thread of its own until the receiver is dropped.
    pub(super) fn serve(self) -> io::Result<()> {
        // Filled here, so that the first packets find sockets however late that thread is scheduled.
        for socket in 0..READY {
            match make(self.kind) {
                // The channel has free capacity: no other code fills it.
                Ok(made) => drop(self.shelf.try_send(made)),
                // An error of the first socket will affect all others.
                Err(error) if socket == 0 => return Err(error),
                Err(_) => break,
            }
        }
        let fill = move || {
            loop {
                let Ok(socket) = make(self.kind) else {
                    // Out of descriptors until a connection ends. The gate counts packets without a socket and tries
                    // again.
                    thread::sleep(PAUSE);
                    continue;
                };
                if self.shelf.send(socket).is_err() {
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

/// A socket that can be bound to any address of either IP version.
pub(super) fn make(kind: Kind) -> io::Result<Socket> {
    let (kind, protocol) = match kind {
        Kind::Tcp => (Type::STREAM, Protocol::TCP),
        Kind::Udp => (Type::DGRAM, Protocol::UDP),
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

//! Sockets of the server's network, made before they are needed.
//!
//! A socket belongs to the network of the thread that made it, whoever binds it later. So the
//! emulator's thread can open one at a new destination without leaving its own network and
//! without waiting for anybody.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::host::has_ipv6;

/// Sockets that lie ready: so many new destinations can come at once.
const READY: usize = 64;

/// Until the next try to make one.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Tcp,
    Udp,
}

/// The end that makes sockets.
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
    /// Fills the shelf, and keeps it full from a thread of its own until nobody takes from it any more.
    pub(super) fn serve(self) -> io::Result<()> {
        // Here, so that the first packets find sockets however late that thread gets a processor.
        for socket in 0..READY {
            match make(self.kind) {
                // There is room: nobody else fills it.
                Ok(made) => drop(self.shelf.try_send(made)),
                // What is wrong with the first is wrong with all.
                Err(error) if socket == 0 => return Err(error),
                Err(_) => break,
            }
        }
        let fill = move || {
            loop {
                let Ok(socket) = make(self.kind) else {
                    // Out of descriptors until some connection ends: what finds no socket is
                    // counted by the gate, and asks again.
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

/// A socket that can be bound to any address of either version.
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
    // IPv6 asks whether an address is the own one before it asks whether it is local by route.
    socket.set_freebind_v6(true)?;
    Ok(socket)
}

//! The server: reads a request, waits for the processing time, replies and closes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use posthaste_units::Span;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use slab::Slab;

use super::message::{LENGTH, Order};
use super::poll::Poll;
use super::timers::Timers;
use crate::Host;
use crate::clock::EmulatorClock;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Maximum time until a stop is noticed.
const STOP_CHECK: Span = Span::from_millis(50);
/// Token of the listening socket. Connections use their slots.
const LISTENER: u64 = u64::MAX;
/// Padding of replies, and size of the read buffer.
const PADDING: [u8; 16 << 10] = [b'.'; 16 << 10];

/// A server of transactions in a thread of its own. Dropping it ends the thread.
pub struct TransactionServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Errno>>>,
}

impl TransactionServer {
    /// Listens on `host` at [`address`](super::address). Connections are accepted when this returns.
    pub fn start(host: &Host) -> Result<Self, Errno> {
        let address = super::address(host.addresses());
        let listener = host.run(move || {
            let socket = tcp_socket()?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &address)?;
            net::listen(&socket, BACKLOG)?;
            Ok::<_, Errno>(socket)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            host.spawn(move || {
                crate::processes::priority::wake_exactly();
                ServerLoop::new(listener)?.run(&stop)
            })
        };
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for TransactionServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failure has shown in the transactions.
            let _ = thread.join();
        }
    }
}

/// A non-blocking socket.
pub(super) fn tcp_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

struct ServerLoop {
    clock: EmulatorClock,
    listener: OwnedFd,
    poll: Poll,
    connections: Slab<ServerConnection>,
    timers: Timers,
}

struct ServerConnection {
    socket: OwnedFd,
    state: ServerState,
}

enum ServerState {
    /// Bytes of the request received, and its beginning.
    Reading {
        got: u32,
        head: [u8; LENGTH],
    },
    Processing(Order),
    /// Bytes of the reply left to send.
    Replying(u32),
}

impl ServerLoop {
    fn new(listener: OwnedFd) -> Result<Self, Errno> {
        let poll = Poll::new()?;
        poll.add(&listener, LISTENER, EventFlags::IN)?;
        Ok(Self {
            clock: EmulatorClock::start(),
            listener,
            poll,
            connections: Slab::new(),
            timers: Timers::default(),
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<(), Errno> {
        while !stop.load(Ordering::Relaxed) {
            let due = self.timers.next_due();
            for token in self.poll.wait(self.clock.now(), due, STOP_CHECK)? {
                match token {
                    LISTENER => self.accept()?,
                    _ => self.advance(token as usize),
                }
            }
            while let Some(token) = self.timers.take(self.clock.now()) {
                self.begin_reply(token as usize);
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Errno> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match net::accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(errno) => return Err(errno),
            };
            let entry = self.connections.vacant_entry();
            let token = entry.key() as u64;
            self.poll.add(&socket, token, EventFlags::IN)?;
            let head = [0; LENGTH];
            let state = ServerState::Reading { got: 0, head };
            entry.insert(ServerConnection { socket, state });
        }
    }

    /// Continues a connection that is readable or writable. A failed one is closed.
    fn advance(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let went = match &mut connection.state {
            ServerState::Reading { got, head } => read(&connection.socket, got, head),
            // Its end was reported, so the reply has no receiver.
            ServerState::Processing(_) => Err(Errno::CONNRESET),
            ServerState::Replying(left) => match write(&connection.socket, left) {
                Ok(()) if *left == 0 => Err(Errno::AGAIN),
                went => went.map(|()| None),
            },
        };
        match went {
            Ok(None) => {}
            Ok(Some(order)) => self.process(slot, order),
            // Closing sends the FIN, after the reply or on its last segment.
            Err(_) => drop(self.connections.remove(slot)),
        }
    }

    fn process(&mut self, slot: usize, order: Order) {
        let connection = &mut self.connections[slot];
        connection.state = ServerState::Processing(order);
        let due = self.clock.now() + order.processing;
        let quiet = self
            .poll
            .change(&connection.socket, slot as u64, EventFlags::empty());
        match quiet {
            Ok(()) => self.timers.set(due, slot as u64),
            Err(_) => drop(self.connections.remove(slot)),
        }
    }

    fn begin_reply(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let ServerState::Processing(order) = connection.state else {
            return;
        };
        // A failure here is one of the connection. Writing will report it.
        let _ = sockopt::set_tcp_cork(&connection.socket, order.fin_on_data);
        connection.state = ServerState::Replying(order.reply);
        let _ = self
            .poll
            .change(&connection.socket, slot as u64, EventFlags::OUT);
        self.advance(slot);
    }
}

/// Reads all available data. Returns the instructions once the request is complete.
fn read(socket: &OwnedFd, got: &mut u32, head: &mut [u8; LENGTH]) -> Result<Option<Order>, Errno> {
    let mut buffer = PADDING;
    loop {
        let (_, length) = match net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => return Err(Errno::CONNRESET),
            Ok(read) => read,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        let before = *got as usize;
        if before < LENGTH {
            let missing = length.min(LENGTH - before);
            head[before..before + missing].copy_from_slice(&buffer[..missing]);
        }
        *got += length as u32;
        let order = Order::read(*head);
        if *got as usize >= LENGTH && *got >= order.request {
            return Ok(Some(order));
        }
    }
}

/// Writes as much as the kernel accepts.
fn write(socket: &OwnedFd, left: &mut u32) -> Result<(), Errno> {
    while *left > 0 {
        let next = (*left as usize).min(PADDING.len());
        match net::send(socket, &PADDING[..next], SendFlags::NOSIGNAL) {
            Ok(length) => {
                debug_assert!(length <= next, "more was sent than given");
                *left -= length as u32;
            }
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

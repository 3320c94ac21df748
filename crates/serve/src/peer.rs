//! The sender of a request.

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;

use hyper::header::HeaderValue;

use crate::connection::ConnectionState;
use crate::tcp_info::{NetworkPath, tcp_info};
use crate::thread::ServerThread;
use crate::timer::{ConnectionPhase, PhaseTimer};

/// The sender of a request, and its connection.
pub struct Peer {
    /// Address of the peer.
    pub address: SocketAddr,
    /// Number of the connection on this thread, from 0.
    pub number: u64,
    /// Storage for the handler, kept with the connection; initially 0.
    pub note: Rc<Cell<u64>>,
    ip: OnceCell<HeaderValue>,
    pub(crate) connection: Rc<ConnectionState>,
    pub(crate) thread: Rc<ServerThread>,
    /// The timer of the connection or of one of its streams.
    pub(crate) timer: Rc<PhaseTimer>,
}

impl Peer {
    pub(crate) fn new(
        address: SocketAddr,
        number: u64,
        connection: Rc<ConnectionState>,
        thread: Rc<ServerThread>,
    ) -> Self {
        Self {
            address,
            number,
            note: Rc::default(),
            ip: OnceCell::new(),
            timer: connection.timer.clone(),
            connection,
            thread,
        }
    }

    /// The IP address as a field value, formatted once per connection.
    pub fn ip(&self) -> &HeaderValue {
        self.ip.get_or_init(|| {
            let text = self.address.ip().to_string();
            HeaderValue::try_from(text).expect("addresses have no control characters")
        })
    }

    /// Starts or ends the time limit for a request's body, for handlers that read it themselves.
    pub fn reading(&self, reading: bool) {
        self.enter(ConnectionPhase::Service { reading });
    }

    /// Returns this peer for one stream of its HTTP/2 connection.
    pub(crate) fn of_stream(&self) -> Self {
        Self {
            address: self.address,
            number: self.number,
            note: self.note.clone(),
            ip: self.ip.clone(),
            connection: self.connection.clone(),
            thread: self.thread.clone(),
            timer: Rc::default(),
        }
    }

    /// Closes an unused connection of this thread, to free a descriptor for a reply. False if every connection is in
    /// use.
    pub async fn evict_unused(&self) -> bool {
        self.thread.evict(false).await
    }

    pub(crate) fn enter(&self, phase: ConnectionPhase) {
        self.timer.enter(phase, self.thread.ticks.get());
    }

    /// The kernel's data about the network path. `None` after the connection has closed.
    pub fn path(&self) -> Option<NetworkPath> {
        tcp_info(self.connection.socket()?)?.path()
    }
}

//! The emulator's side of the relay: sees each packet that goes up, and opens new destinations.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use socket2::Socket;
use tokio::sync::mpsc::UnboundedSender;

use super::counters::{Counters, count};
use super::names::Names;
use super::{Door, Opened};
use crate::address::SERVER;
use crate::flow::Flow;
use crate::host::has_ipv6;

/// Destinations kept open at once; each costs a descriptor.
const DESTINATIONS: usize = 4096;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest wait for a socket when many destinations come at once.
const WAIT: Duration = Duration::from_millis(2);

/// TCP's and UDP's numbers in IP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Opens a socket at each destination outside before the first packet for it arrives there.
pub struct Gate {
    tcp: Receiver<Socket>,
    udp: Receiver<Socket>,
    seen: HashSet<(u8, SocketAddr)>,
    resolvers: HashMap<SocketAddr, SocketAddr>,
    doors: UnboundedSender<Door>,
    counters: Arc<Counters>,
}

impl Gate {
    pub(super) fn new(
        [tcp, udp]: [Receiver<Socket>; 2],
        names: &Names,
        doors: &UnboundedSender<Door>,
        counters: &Arc<Counters>,
    ) -> Self {
        Self {
            tcp,
            udp,
            seen: HashSet::new(),
            resolvers: names.resolvers().collect(),
            doors: doors.clone(),
            counters: counters.clone(),
        }
    }

    /// Looks at the connection of a packet that goes up. Costs some twenty microseconds where its
    /// destination is new and one look into a table where it is not.
    pub(crate) fn look(&mut self, flow: &Flow) {
        let destination = flow.server;
        let inside = SERVER.both().contains(&destination.ip());
        if inside || !matches!(flow.protocol, TCP | UDP) || destination.port() == 0 {
            return;
        }
        let key = (flow.protocol, destination);
        if self.seen.contains(&key) {
            return;
        }
        if self.seen.len() >= DESTINATIONS || self.open(flow.protocol, destination).is_err() {
            count(&self.counters.refused);
        }
        // One attempt each: who comes again meets what is there. Beyond twice the limit (a scan of
        // the whole world) memory is worth more than a number.
        if self.seen.len() < 2 * DESTINATIONS {
            self.seen.insert(key);
        }
    }

    fn open(&self, protocol: u8, destination: SocketAddr) -> io::Result<()> {
        let spare = if protocol == TCP {
            &self.tcp
        } else {
            &self.udp
        };
        let socket = spare.recv_timeout(WAIT).map_err(io::Error::other)?;
        socket.bind(&as_bound(destination).into())?;
        socket.set_nonblocking(true)?;
        let opened = if protocol == TCP {
            socket.listen(BACKLOG)?;
            Opened::Tcp(socket.into())
        } else {
            Opened::Udp(socket.into())
        };
        let target = self.resolvers.get(&destination).unwrap_or(&destination);
        let door = Door {
            socket: opened,
            targets: [*target].into(),
        };
        self.doors.send(door).map_err(io::Error::other)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({} destinations)", self.seen.len())
    }
}

/// As a socket for both versions is bound.
fn as_bound(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) if has_ipv6() => (v4.to_ipv6_mapped(), address.port()).into(),
        _ => address,
    }
}

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

/// Maximum number of open destinations. Each costs a descriptor.
const DESTINATIONS: usize = 4096;
/// Maximum number of remembered destinations. Beyond it (a scan of all addresses), counters are no longer exact.
const REMEMBERED: usize = 2 * DESTINATIONS;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest wait for a spare socket when many destinations arrive at once. Packets stand still meanwhile.
const WAIT: Duration = Duration::from_millis(2);

/// IP protocol numbers of TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Opens a socket at each destination outside before the first packet to it arrives there.
pub struct Gate {
    tcp: Shelf,
    udp: Shelf,
    seen: HashSet<(u8, SocketAddr)>,
    /// Destinations that found no spare socket so far.
    short: HashSet<(u8, SocketAddr)>,
    resolvers: HashMap<SocketAddr, SocketAddr>,
    doors: UnboundedSender<Door>,
    counters: Arc<Counters>,
}

/// Spare sockets.
struct Shelf {
    spare: Receiver<Socket>,
    /// The last wait for a socket failed.
    is_dry: bool,
}

impl Shelf {
    fn new(spare: Receiver<Socket>) -> Self {
        let is_dry = false;
        Self { spare, is_dry }
    }

    /// The next spare socket. Waits only if the last wait succeeded.
    fn take(&mut self) -> Option<Socket> {
        let socket = match self.is_dry {
            true => self.spare.try_recv().ok(),
            false => self.spare.recv_timeout(WAIT).ok(),
        };
        self.is_dry = socket.is_none();
        socket
    }
}

impl Gate {
    pub(super) fn new(
        [tcp, udp]: [Receiver<Socket>; 2],
        names: &Names,
        doors: &UnboundedSender<Door>,
        counters: &Arc<Counters>,
    ) -> Self {
        Self {
            tcp: Shelf::new(tcp),
            udp: Shelf::new(udp),
            seen: HashSet::new(),
            short: HashSet::new(),
            resolvers: names.resolvers().collect(),
            doors: doors.clone(),
            counters: counters.clone(),
        }
    }

    /// Handles a packet that goes up. Costs some twenty microseconds for a new destination, and one table lookup
    /// otherwise.
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
        if self.seen.len() >= DESTINATIONS {
            count(&self.counters.refused);
        } else {
            let shelf = match flow.protocol {
                TCP => &mut self.tcp,
                _ => &mut self.udp,
            };
            let Some(socket) = shelf.take() else {
                if self.short.len() < REMEMBERED && self.short.insert(key) {
                    count(&self.counters.refused);
                }
                return;
            };
            self.short.remove(&key);
            if self.open(socket, flow.protocol, destination).is_err() {
                count(&self.counters.refused);
            }
        }
        // One attempt for each destination that got a socket. Later packets use its result.
        if self.seen.len() < REMEMBERED {
            self.seen.insert(key);
        }
    }

    fn open(&self, socket: Socket, protocol: u8, destination: SocketAddr) -> io::Result<()> {
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

/// The address to bind for sockets of both IP versions.
fn as_bound(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) if has_ipv6() => (v4.to_ipv6_mapped(), address.port()).into(),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::stock::{Kind, make};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::mpsc::sync_channel;
    use std::time::Instant;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_destination_that_found_no_socket_is_opened_when_there_is_one() {
        let (shelf, tcp) = sync_channel(1);
        let (_shelf_of_udp, udp) = sync_channel(1);
        let (doors, mut inbox) = unbounded_channel();
        let counters = Arc::new(Counters::default());
        let mut gate = Gate::new([tcp, udp], &Names::read(""), &doors, &counters);
        // Free again as soon as it is dropped.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let flow = Flow {
            protocol: TCP,
            client: ([10, 0, 0, 1], 40_000).into(),
            server: free.local_addr().unwrap(),
        };
        drop(free);
        let begun = Instant::now();
        for _ in 0..10_000 {
            gate.look(&flow);
        }
        assert!(begun.elapsed() < 5_000 * WAIT, "who comes does not wait");
        assert_eq!(counters.read().refused, 1);
        shelf.send(make(Kind::Tcp).unwrap()).unwrap();
        gate.look(&flow);
        gate.look(&flow);
        let door = inbox.try_recv().unwrap();
        assert_eq!(door.targets[..], [flow.server]);
        assert!(inbox.try_recv().is_err(), "once");
        assert_eq!(counters.read().refused, 1);
    }
}

//! The emulator's side of the relay: sees each packet that goes up, and opens new destinations.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use socket2::Socket;
use tokio::sync::mpsc::UnboundedSender;

use super::counters::{RelayCounters, count};
use super::resolv_conf::ResolvConf;
use super::spare_sockets::SpareSockets;
use super::{Destination, DestinationSocket};
use crate::namespaces::address::Addresses;
use crate::namespaces::host::has_ipv6;
use crate::path::flow::Flow;

/// Maximum number of open destinations. Each costs a descriptor.
const DESTINATIONS: usize = 4096;
/// Maximum number of remembered destinations. Beyond it (a scan of all addresses), counters are no longer exact.
const REMEMBERED: usize = 2 * DESTINATIONS;
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// IP protocol numbers of TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Opens a socket at each destination outside before the first packet to it arrives there.
pub struct DestinationOpener {
    tcp: SpareSockets,
    udp: SpareSockets,
    seen: HashSet<(u8, SocketAddr)>,
    /// Destinations that found no spare socket so far.
    short: HashSet<(u8, SocketAddr)>,
    resolvers: HashMap<SocketAddr, SocketAddr>,
    server: Addresses,
    destinations: UnboundedSender<Destination>,
    counters: Arc<RelayCounters>,
}

impl DestinationOpener {
    pub(super) fn new(
        [tcp, udp]: [SpareSockets; 2],
        resolv_conf: &ResolvConf,
        server: Addresses,
        destinations: &UnboundedSender<Destination>,
        counters: &Arc<RelayCounters>,
    ) -> Self {
        Self {
            tcp,
            udp,
            seen: HashSet::new(),
            short: HashSet::new(),
            resolvers: resolv_conf.resolvers().collect(),
            server,
            destinations: destinations.clone(),
            counters: counters.clone(),
        }
    }

    /// Handles a packet that goes up. Costs some twenty microseconds for a new destination, and one table lookup
    /// otherwise.
    pub(crate) fn observe(&mut self, flow: &Flow) {
        let address = flow.server;
        let inside = self.server.both().contains(&address.ip());
        if inside || !matches!(flow.protocol, TCP | UDP) || address.port() == 0 {
            return;
        }
        let key = (flow.protocol, address);
        if self.seen.contains(&key) {
            return;
        }
        if self.seen.len() >= DESTINATIONS {
            count(&self.counters.refused);
        } else {
            let spare = match flow.protocol {
                TCP => &mut self.tcp,
                _ => &mut self.udp,
            };
            let Some(socket) = spare.take() else {
                if self.short.len() < REMEMBERED && self.short.insert(key) {
                    count(&self.counters.refused);
                }
                return;
            };
            self.short.remove(&key);
            if self.open(socket, flow.protocol, address).is_err() {
                count(&self.counters.refused);
            }
        }
        // One attempt for each destination that got a socket. Later packets use its result.
        if self.seen.len() < REMEMBERED {
            self.seen.insert(key);
        }
        debug_assert!(
            self.seen.len().max(self.short.len()) <= REMEMBERED,
            "more destinations are remembered than allowed"
        );
    }

    fn open(&self, socket: Socket, protocol: u8, address: SocketAddr) -> io::Result<()> {
        socket.bind(&as_bound(address).into())?;
        socket.set_nonblocking(true)?;
        let opened = if protocol == TCP {
            socket.listen(BACKLOG)?;
            DestinationSocket::Tcp(socket.into())
        } else {
            DestinationSocket::Udp(socket.into())
        };
        let target = self.resolvers.get(&address).unwrap_or(&address);
        let destination = Destination {
            socket: opened,
            targets: [*target].into(),
        };
        self.destinations
            .send(destination)
            .map_err(io::Error::other)
    }
}

impl fmt::Debug for DestinationOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DestinationOpener({} destinations)", self.seen.len())
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
    use crate::namespaces::address::SERVER;
    use crate::path::relay::spare_sockets::{SocketKind, WAIT, make};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::mpsc::sync_channel;
    use std::time::Instant;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_destination_without_a_socket_is_opened_once_one_exists() {
        let (producer, tcp) = sync_channel(1);
        let (_producer_of_udp, udp) = sync_channel(1);
        let (destinations, mut inbox) = unbounded_channel();
        let counters = Arc::new(RelayCounters::default());
        let mut opener = DestinationOpener::new(
            [tcp, udp].map(SpareSockets::new),
            &ResolvConf::read(""),
            SERVER,
            &destinations,
            &counters,
        );
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
            opener.observe(&flow);
        }
        assert!(begun.elapsed() < 5_000 * WAIT, "who comes does not wait");
        assert_eq!(counters.read().refused, 1);
        producer.send(make(SocketKind::Tcp).unwrap()).unwrap();
        opener.observe(&flow);
        opener.observe(&flow);
        let destination = inbox.try_recv().unwrap();
        assert_eq!(destination.targets[..], [flow.server]);
        assert!(inbox.try_recv().is_err(), "once");
        assert_eq!(counters.read().refused, 1);
    }
}

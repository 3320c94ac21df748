//! A relay for connections from inside to hosts outside, with threads in the machine's own network namespace.
//!
//! The client's network namespace routes all traffic to other hosts to the server's end of the link, and every address
//! is local there. When a packet to a new destination enters the link, the [`DestinationOpener`] opens a socket at exactly that
//! destination, so that the server's kernel answers when the packet arrives. The relay opens an outside connection for
//! each connection and copies bytes and datagrams between the two. Inside, a connection crosses the emulated link and
//! has the server's end as its peer. Outside, it uses the machine's own network. The relay forwards the end of a
//! direction, resets and refusals. A refusal arrives as a reset, since the inside end has been accepted by then.
//!
//! Names resolve because the machine's resolvers have their own addresses inside ([`ResolvConf`]). Every refusal is counted
//! ([`Relayed`]). Protocols other than TCP and UDP are not relayed: the server's end answers a ping to any address
//! itself.

mod counters;
mod destination_opener;
mod resolv_conf;
mod spare_sockets;
mod tcp;
mod udp;

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use self::counters::RelayCounters;
pub use self::counters::Relayed;
pub use self::destination_opener::DestinationOpener;
pub use self::resolv_conf::{ResolvConf, ResolvConfError};
use self::spare_sockets::{SocketKind, SocketProducer, spare_sockets};
use crate::namespaces::address::Addresses;
use crate::namespaces::host::{DEVICE, Host, HostError, has_ipv6, index_of};
use crate::namespaces::netlink::Netlink;
use crate::namespaces::route::RouteOptions;

/// A socket at a destination inside, with its targets outside.
struct Destination {
    socket: DestinationSocket,
    targets: Arc<[SocketAddr]>,
}

/// A socket at a destination, by protocol.
enum DestinationSocket {
    Tcp(std::net::TcpListener),
    Udp(std::net::UdpSocket),
}

impl DestinationSocket {
    /// A socket of each protocol at this address of the calling thread's network namespace.
    fn open(address: SocketAddr) -> io::Result<[Self; 2]> {
        Ok([
            Self::Tcp(TcpListener::bind(address)?),
            Self::Udp(UdpSocket::bind(address)?),
        ])
    }
}

/// The relay's thread, in the machine's own network namespace. Dropping it resets all relayed connections.
#[derive(Debug)]
pub struct Relay {
    destinations: UnboundedSender<Destination>,
    sockets: [SocketProducer; 2],
    /// The unspecified address of each IP version that can reach the outside.
    ways: Vec<IpAddr>,
    counters: Arc<RelayCounters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts the relay in the calling thread's network namespace, which must be the machine's own. The opener is for
    /// the [`Emulation`](crate::Emulation) to which the relay is then attached, with this server.
    pub fn start(
        resolv_conf: &ResolvConf,
        server: Addresses,
    ) -> io::Result<(Self, DestinationOpener)> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (destinations, inbox) = unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(RelayCounters::default());
        let serves = {
            let counters = counters.clone();
            async move {
                tokio::select! {
                    () = serve(inbox, counters) => {}
                    _ = stopped => {}
                }
            }
        };
        let thread = thread::Builder::new().name("relay".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serves))?;
        let (tcp, spare_tcp) = spare_sockets(SocketKind::Tcp);
        let (udp, spare_udp) = spare_sockets(SocketKind::Udp);
        let opener = DestinationOpener::new(
            [spare_tcp, spare_udp],
            resolv_conf,
            server,
            &destinations,
            &counters,
        );
        let relay = Self {
            destinations,
            sockets: [tcp, udp],
            ways: ways_out(),
            counters,
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok((relay, opener))
    }

    /// Routes the client's traffic for hosts outside to this relay, with the options of the client's route to the
    /// server.
    pub fn attach(
        &self,
        client: &Host,
        server: &Host,
        route: &RouteOptions,
    ) -> Result<(), HostError> {
        let (ways, sockets) = (self.ways.clone(), self.sockets.clone());
        server.run(move || {
            let mut netlink = Netlink::open()?;
            ways.into_iter()
                .try_for_each(|way| netlink.claim_all(way))?;
            sockets
                .into_iter()
                .try_for_each(SocketProducer::serve)
                .map_err(machine("sockets for a relay"))
        })?;
        let (ways, route) = (self.ways.clone(), route.clone());
        let servers = server.addresses().both();
        client.run(move || {
            let mut netlink = Netlink::open()?;
            let device = index_of(DEVICE)?;
            for way in ways {
                let mut servers = servers.into_iter();
                let server = servers.find(|server| server.is_ipv4() == way.is_ipv4());
                netlink.set_route(device, way, 0, server, &route.metrics())?;
            }
            Ok(())
        })
    }

    /// Forwards `port` of the server, TCP and UDP, to the first of `targets`, hosts outside, that answers.
    pub fn lead(&self, server: &Host, port: u16, targets: &[SocketAddr]) -> Result<(), HostError> {
        let addresses = server.addresses().both();
        let sockets = server.run(move || {
            let addresses = addresses
                .into_iter()
                .filter(|address| address.is_ipv4() || has_ipv6());
            let open = |address| DestinationSocket::open((address, port).into());
            addresses.map(open).collect::<io::Result<Vec<_>>>()
        });
        let sockets = sockets.map_err(machine("a port of the server for a relay"))?;
        for socket in sockets.into_iter().flatten() {
            self.open(socket, targets);
        }
        Ok(())
    }

    /// Counters so far.
    pub fn relayed(&self) -> Relayed {
        self.counters.read()
    }

    fn open(&self, socket: DestinationSocket, targets: &[SocketAddr]) {
        debug_assert!(!targets.is_empty(), "a destination without a target");
        let targets = targets.into();
        // The thread ends only with this relay.
        let _ = self.destinations.send(Destination { socket, targets });
    }
}

fn machine(operation: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |error| HostError::Machine { operation, error }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Serves every destination that is opened, until all senders are dropped.
async fn serve(mut destinations: UnboundedReceiver<Destination>, counters: Arc<RelayCounters>) {
    while let Some(destination) = destinations.recv().await {
        let counters = counters.clone();
        let served = match destination.socket {
            DestinationSocket::Tcp(listener) => tcp::serve(listener, destination.targets, counters),
            DestinationSocket::Udp(socket) => udp::serve(socket, destination.targets, counters),
        };
        if let Err(error) = served {
            // Happens only if the process has no descriptors left.
            let _ = writeln!(io::stderr(), "relay: {error}");
        }
    }
}

/// The unspecified address of each IP version in which the calling thread's network namespace has a route to the
/// Internet. Always includes IPv4, since the resolvers have IPv4 addresses inside.
fn ways_out() -> Vec<IpAddr> {
    // Connecting a datagram socket sends nothing and only looks up a route, here to a DNS root server as a distant
    // host.
    let far = Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30);
    let leads = |socket: UdpSocket| socket.connect((far, 53)).is_ok();
    let v6 = has_ipv6() && UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok_and(leads);
    let mut ways = vec![Ipv4Addr::UNSPECIFIED.into()];
    ways.extend(v6.then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
    ways
}

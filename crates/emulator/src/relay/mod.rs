//! The way out: what commands inside ask of hosts outside is fetched by threads that stayed there.
//!
//! The client's network sends everything that is not for the server to the server's end of the
//! link, and there every address is local. When a packet for a new destination enters the link,
//! the [`Gate`] opens a socket at exactly that destination, so that its own kernel answers when
//! the packet arrives; the relay connects outside for each connection and carries bytes and
//! datagrams between the two. A connection is therefore two: inside over the emulated link, with
//! the server's end as its peer, and outside as the machine has it. The end of a direction, a
//! reset and a refusal are passed on; a refusal comes as a reset, since the end inside has been
//! accepted by then.
//!
//! Names resolve because the machine's resolvers stand at addresses of their own inside
//! ([`Names`]). Every refusal is counted ([`Relayed`]). Other protocols than TCP and UDP do not
//! get out: the server's end answers a ping to any address itself.

mod counters;
mod gate;
mod names;
mod stock;
mod tcp;
mod udp;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use self::counters::Counters;
pub use self::counters::Relayed;
pub use self::gate::Gate;
pub use self::names::{Names, NamesError};
use self::stock::{Kind, Stock, stock};
use crate::address::SERVER;
use crate::emulation::Running;
use crate::host::{DEVICE, Host, HostError, has_ipv6, index_of};
use crate::netlink::Netlink;
use crate::route::RouteOptions;

/// A socket at a destination inside, and where it leads outside.
struct Door {
    socket: Opened,
    targets: Arc<[SocketAddr]>,
}

enum Opened {
    Tcp(std::net::TcpListener),
    Udp(std::net::UdpSocket),
}

/// The relay's thread, which lives in the machine's own network. Dropping it resets everything
/// that passes.
#[derive(Debug)]
pub struct Relay {
    doors: UnboundedSender<Door>,
    stocks: [Stock; 2],
    /// Any address of each version that leads outside.
    ways: Vec<IpAddr>,
    counters: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts the relay in the calling thread's network, which is to be the machine's own. The
    /// gate is for the [`Emulation`](crate::Emulation) that the relay is then attached to.
    pub fn start(names: &Names) -> io::Result<(Self, Gate)> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (doors, inbox) = unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
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
        let (tcp, spare_tcp) = stock(Kind::Tcp);
        let (udp, spare_udp) = stock(Kind::Udp);
        let gate = Gate::new([spare_tcp, spare_udp], names, &doors, &counters);
        let relay = Self {
            doors,
            stocks: [tcp, udp],
            ways: ways_out(),
            counters,
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok((relay, gate))
    }

    /// Sends what the client has for hosts outside to this relay, by a route with the options
    /// that its route to the server has.
    pub fn attach(&self, running: &Running, route: &RouteOptions) -> Result<(), HostError> {
        let (ways, stocks) = (self.ways.clone(), self.stocks.clone());
        running.server.run(move || {
            let mut netlink = Netlink::open()?;
            ways.into_iter()
                .try_for_each(|way| netlink.claim_all(way))?;
            stocks
                .into_iter()
                .try_for_each(Stock::serve)
                .map_err(machine("sockets for a relay"))
        })?;
        let (ways, route) = (self.ways.clone(), route.clone());
        running.client.run(move || {
            let mut netlink = Netlink::open()?;
            let device = index_of(DEVICE)?;
            for way in ways {
                let server = SERVER
                    .both()
                    .into_iter()
                    .find(|server| server.is_ipv4() == way.is_ipv4());
                netlink.set_route(device, (way, 0), server, route.metrics())?;
            }
            Ok(())
        })
    }

    /// Has `port` of the server lead to the first of `targets`, hosts outside, that answers.
    pub fn lead(&self, server: &Host, port: u16, targets: &[SocketAddr]) -> Result<(), HostError> {
        let addresses = server.addresses().both();
        let listeners = server.run(move || {
            let addresses = addresses
                .into_iter()
                .filter(|address| address.is_ipv4() || has_ipv6());
            let listen = |address| TcpListener::bind((address, port));
            addresses.map(listen).collect::<io::Result<Vec<_>>>()
        });
        for listener in listeners.map_err(machine("a port of the server for a relay"))? {
            self.open(Opened::Tcp(listener), targets);
        }
        Ok(())
    }

    /// What has passed so far.
    pub fn relayed(&self) -> Relayed {
        self.counters.read()
    }

    fn open(&self, socket: Opened, targets: &[SocketAddr]) {
        let targets = targets.into();
        // The thread ends only with this relay.
        let _ = self.doors.send(Door { socket, targets });
    }
}

fn machine(what: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |error| HostError::Machine { what, error }
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

/// Serves every door that is opened, until nobody can open any more.
async fn serve(mut doors: UnboundedReceiver<Door>, counters: Arc<Counters>) {
    while let Some(door) = doors.recv().await {
        let counters = counters.clone();
        let served = match door.socket {
            Opened::Tcp(listener) => tcp::serve(listener, door.targets, counters),
            Opened::Udp(socket) => udp::serve(socket, door.targets, counters),
        };
        if let Err(error) = served {
            // Only a process without descriptors comes here.
            eprintln!("relay: {error}");
        }
    }
}

/// Any address of each version of IP in which the calling thread's network leads far away. IPv4
/// always does, since the resolvers stand there.
fn ways_out() -> Vec<IpAddr> {
    // Connecting a datagram socket sends nothing, it only asks for a route: here to the root
    // servers of DNS, which are as far away as anything.
    let far = Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30);
    let leads = |socket: UdpSocket| socket.connect((far, 53)).is_ok();
    let v6 = has_ipv6() && UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok_and(leads);
    let mut ways = vec![Ipv4Addr::UNSPECIFIED.into()];
    ways.extend(v6.then_some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
    ways
}

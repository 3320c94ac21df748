//! Emulated networks between clients and gateway: one relay per network, with a pair of links per connection.
//!
//! Data in each direction passes through a [`Link`] with delay and bandwidth of the network's profile, in pieces of one
//! segment. Nothing is lost, because the kernel's TCP over loopback below the relay would not notice a loss. A new
//! connection first waits for the round trip of its handshake.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use posthaste_link::{Direction, Fate, Link, Packet, Plan};
use posthaste_serve::Background;
use posthaste_units::{Instant, Seed, Span};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::DemoError;
use crate::controls::ClientNetwork;

/// Payload bytes of a segment, and bytes of its headers (IPv4, TCP with timestamps).
const SEGMENT: usize = 1448;
const HEADERS: u32 = 52;
/// Maximum number of pieces in a link, like a TCP window. Less than the link's queue holds.
const WINDOW: usize = 40;
/// Length of the accept queue.
const BACKLOG: u32 = 1024;
/// Wait before the next attempt after a failed accept.
const PAUSE: time::Duration = time::Duration::from_millis(20);

/// Handle of the relays' thread. Dropping it closes all connections.
pub(crate) struct NetworkRelays {
    addresses: [SocketAddr; ClientNetwork::ALL.len()],
    target: Arc<Mutex<SocketAddr>>,
    _thread: Background,
}

impl NetworkRelays {
    /// Starts a relay for each network, towards the gateway.
    pub(crate) fn open(gateway: SocketAddr) -> Result<Self, DemoError> {
        let target = Arc::new(Mutex::new(gateway));
        let mut listeners = Vec::new();
        let mut addresses = [gateway; ClientNetwork::ALL.len()];
        for (address, network) in addresses.iter_mut().zip(ClientNetwork::ALL) {
            let listener = posthaste_serve::listen(([127, 0, 0, 1], 0).into(), BACKLOG)?;
            *address = listener.local_addr().map_err(DemoError::Thread)?;
            listeners.push((listener, network));
        }
        let aim = target.clone();
        let accepting = move || async move {
            let mut tasks = JoinSet::new();
            for (listener, network) in listeners {
                tasks.spawn(accept(listener, network, aim.clone()));
            }
            // The tasks never return.
            while tasks.join_next().await.is_some() {}
        };
        Ok(Self {
            addresses,
            target,
            _thread: Background::start("lines", accepting).map_err(DemoError::Thread)?,
        })
    }

    /// Address for the clients of a network.
    pub(crate) fn address(&self, network: ClientNetwork) -> SocketAddr {
        let index = ClientNetwork::ALL
            .iter()
            .position(|other| *other == network);
        self.addresses[index.unwrap_or_default()]
    }

    /// Directs new connections to this gateway.
    pub(crate) fn aim(&self, gateway: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }
}

/// Accepts connections forever.
async fn accept(
    listener: std::net::TcpListener,
    network: ClientNetwork,
    target: Arc<Mutex<SocketAddr>>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let profile = network.profile();
    let plans = Direction::BOTH.map(|direction| Arc::new(profile.plan(direction)));
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let gateway = *target.lock().unwrap_or_else(PoisonError::into_inner);
                let plans = plans.clone();
                tokio::spawn(async move {
                    // Errors break the connection at both ends, which report them.
                    let _ = relay(client, gateway, &plans).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn relay(client: TcpStream, gateway: SocketAddr, plans: &[Arc<Plan>; 2]) -> io::Result<()> {
    let [up, down] = plans;
    tokio::time::sleep((up.delay + down.delay).into()).await;
    let gateway = TcpStream::connect(gateway).await?;
    gateway.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_gateway, to_gateway) = gateway.into_split();
    tokio::try_join!(
        carry(from_client, to_gateway, up),
        carry(from_gateway, to_client, down),
    )?;
    Ok(())
}

/// A piece of a stream. Bit errors have no effect on it.
#[derive(Clone)]
struct Piece(Box<[u8]>);

impl Packet for Piece {
    fn bytes(&self) -> u32 {
        self.0.len() as u32 + HEADERS
    }

    fn flip(&mut self, _: u32) {}
}

/// Forwards data through a link until the stream ends.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    plan: &Arc<Plan>,
) -> io::Result<()> {
    let begun = time::Instant::now();
    let now = || Instant::ORIGIN + Span::from(begun.elapsed());
    let mut line = Link::<Piece>::new(plan, Seed::default());
    let (mut inside, mut open) = (0, true);
    let mut buffer = [0; SEGMENT];
    loop {
        while let Some(departure) = line.pop(now()) {
            debug_assert!(matches!(departure.fate, Fate::Delivered(_)));
            inside -= 1;
            to.write_all(&departure.packet.0).await?;
        }
        if !open && inside == 0 {
            return to.shutdown().await;
        }
        let wake = line.wake().unwrap_or(Instant::FAR_FUTURE);
        let pause = wake.saturating_since(now()).into();
        tokio::select! {
            read = from.read(&mut buffer), if open && inside < WINDOW => match read? {
                0 => open = false,
                length => {
                    inside += 1;
                    line.push(now(), Piece(buffer[..length].into()));
                }
            },
            () = tokio::time::sleep(pause), if inside > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// Server that reads everything from one client, then sends the same back.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut payload = Vec::new();
            client.read_to_end(&mut payload).unwrap();
            client.write_all(&payload).unwrap();
        });
        address
    }

    /// Sends `payload` over a network to an echo server. Returns the echo and the elapsed time.
    fn pass(network: ClientNetwork, payload: &[u8]) -> (Vec<u8>, Span) {
        let lines = NetworkRelays::open(echo()).unwrap();
        let begun = time::Instant::now();
        let mut client = TcpStream::connect(lines.address(network)).unwrap();
        client.write_all(payload).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        (heard, begun.elapsed().into())
    }

    #[test]
    fn networks_pass_data_unchanged_including_its_end() {
        let payload: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        assert!(pass(ClientNetwork::Lan, &payload).0 == payload);
    }

    #[test]
    fn a_line_takes_its_delay_and_its_bandwidth() {
        // The handshake and the data each take a round trip of 70 ms.
        let (_, lte) = pass(ClientNetwork::Lte, b"hello");
        assert!(lte >= Span::from_millis(140), "{lte}");
        // 2,000 bytes and the headers of two segments at 57.6 kbit/s.
        let (_, bluetooth) = pass(ClientNetwork::Bluetooth, &[7; 2000]);
        assert!(
            bluetooth >= Span::from_millis(2 * 2 * 3 + 292),
            "{bluetooth}"
        );
    }
}

//! The networks between clients and gateway: a relay for each, whose every connection has a line of its own.
//!
//! What a client sends goes through a [`Link`] with the delay and the bandwidth of the network's profile, in pieces as
//! long as a segment, and so does what comes back. No piece is lost: below this relay is the kernel's TCP over loopback,
//! which would know nothing of a loss. A connection begins with the round trip that its handshake would take.

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

use crate::Error;
use crate::controls::Network;

/// Bytes of a segment, and those of its headers (IPv4, TCP with timestamps).
const SEGMENT: usize = 1448;
const HEADERS: u32 = 52;
/// Pieces in a line at once, as a window would have it: fewer than its queue holds.
const WINDOW: usize = 40;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Before a connection is accepted again that could not be.
const PAUSE: time::Duration = time::Duration::from_millis(20);

/// The relays' thread. Dropping it ends every connection.
pub(crate) struct Lines {
    addresses: [SocketAddr; Network::ALL.len()],
    target: Arc<Mutex<SocketAddr>>,
    _thread: Background,
}

impl Lines {
    /// Opens every network, with the gateway at its far end.
    pub(crate) fn open(gateway: SocketAddr) -> Result<Self, Error> {
        let target = Arc::new(Mutex::new(gateway));
        let mut listeners = Vec::new();
        let mut addresses = [gateway; Network::ALL.len()];
        for (address, network) in addresses.iter_mut().zip(Network::ALL) {
            let listener = posthaste_serve::listen(([127, 0, 0, 1], 0).into(), BACKLOG)?;
            *address = listener.local_addr().map_err(Error::Thread)?;
            listeners.push((listener, network));
        }
        let aim = target.clone();
        let accepting = move || async move {
            let mut tasks = JoinSet::new();
            for (listener, network) in listeners {
                tasks.spawn(accept(listener, network, aim.clone()));
            }
            // Each accepts for ever.
            while tasks.join_next().await.is_some() {}
        };
        Ok(Self {
            addresses,
            target,
            _thread: Background::start("lines", accepting).map_err(Error::Thread)?,
        })
    }

    /// Where clients of a network connect.
    pub(crate) fn address(&self, network: Network) -> SocketAddr {
        let place = Network::ALL.iter().position(|other| *other == network);
        self.addresses[place.unwrap_or_default()]
    }

    /// Connections from now on lead to this gateway.
    pub(crate) fn aim(&self, gateway: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = gateway;
    }
}

/// Accepts for ever.
async fn accept(
    listener: std::net::TcpListener,
    network: Network,
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
                    // A connection that breaks here breaks at both ends, which say so themselves.
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

/// A piece of a stream; no bit of it flips.
#[derive(Clone)]
struct Piece(Box<[u8]>);

impl Packet for Piece {
    fn bytes(&self) -> u32 {
        self.0.len() as u32 + HEADERS
    }

    fn flip(&mut self, _: u32) {}
}

/// Carries bytes through a line, to their end.
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
        while let Some(passage) = line.pop(now()) {
            debug_assert!(matches!(passage.fate, Fate::Delivered(_)));
            inside -= 1;
            to.write_all(&passage.packet.0).await?;
        }
        if !open && inside == 0 {
            return to.shutdown().await;
        }
        let wake = line.wake().unwrap_or(Instant::FAR_FUTURE);
        let pause = wake.since(now()).into();
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

    /// Answers one client, when all it has to say has come, with the same.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut said = Vec::new();
            client.read_to_end(&mut said).unwrap();
            client.write_all(&said).unwrap();
        });
        address
    }

    /// What comes back of `said` over a network, and when.
    fn pass(network: Network, said: &[u8]) -> (Vec<u8>, Span) {
        let lines = Lines::open(echo()).unwrap();
        let begun = time::Instant::now();
        let mut client = TcpStream::connect(lines.address(network)).unwrap();
        client.write_all(said).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        (heard, begun.elapsed().into())
    }

    #[test]
    fn what_goes_in_comes_out_whole_and_so_does_its_end() {
        let said: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        assert!(pass(Network::Lan, &said).0 == said);
    }

    #[test]
    fn a_line_takes_its_delay_and_its_bandwidth() {
        // A handshake and a round trip of 70 ms each.
        let (_, lte) = pass(Network::Lte, b"hello");
        assert!(lte >= Span::from_millis(140), "{lte}");
        // 2,000 bytes and the headers of two segments at 57.6 kbit/s.
        let (_, bluetooth) = pass(Network::Bluetooth, &[7; 2000]);
        assert!(
            bluetooth >= Span::from_millis(2 * 2 * 3 + 292),
            "{bluetooth}"
        );
    }
}

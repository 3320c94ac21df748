//! Datagrams: each sender inside gets a socket outside, until no answer has arrived for a while.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::counters::{RelayCounters, count};

/// Maximum number of flows of one destination. Each costs a descriptor.
const FLOWS: usize = 512;
/// Maximum time without an answer before a flow ends.
const IDLE: Duration = Duration::from_secs(60);
/// The same limit for queries to resolvers, since each query uses a new port.
const IDLE_RESOLVER: Duration = Duration::from_secs(6);
/// Port of DNS.
const DNS: u16 = 53;
/// Longest datagram.
const LONGEST: usize = 65_535;

/// A socket inside, with its flows.
struct DatagramRelay {
    inside: UdpSocket,
    target: SocketAddr,
    flows: Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>,
    counters: Arc<RelayCounters>,
}

/// Relays arriving datagrams for as long as the runtime lives.
pub(super) fn serve(
    inside: std::net::UdpSocket,
    targets: Arc<[SocketAddr]>,
    counters: Arc<RelayCounters>,
) -> io::Result<()> {
    inside.set_nonblocking(true)?;
    let relay = Arc::new(DatagramRelay {
        inside: UdpSocket::from_std(inside)?,
        target: targets[0],
        flows: Mutex::default(),
        counters,
    });
    tokio::spawn(async move {
        let mut datagram = vec![0; LONGEST];
        loop {
            // The error belongs to an earlier datagram, which was lost.
            let Ok((length, sender)) = relay.inside.recv_from(&mut datagram).await else {
                count(&relay.counters.datagrams_lost);
                continue;
            };
            if relay.forward(sender, &datagram[..length]).await.is_err() {
                count(&relay.counters.datagrams_lost);
            }
        }
    });
    Ok(())
}

impl DatagramRelay {
    async fn forward(self: &Arc<Self>, sender: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let known = self.flows().get(&sender).cloned();
        let outside = match known {
            Some(outside) => outside,
            None => self.begin(sender).await?,
        };
        outside.send(datagram).await.map(|_| ())
    }

    async fn begin(self: &Arc<Self>, sender: SocketAddr) -> io::Result<Arc<UdpSocket>> {
        if self.flows().len() >= FLOWS {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let any: SocketAddr = match self.target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let outside = Arc::new(UdpSocket::bind(any).await?);
        outside.connect(self.target).await?;
        let earlier = self.flows().insert(sender, outside.clone());
        debug_assert!(earlier.is_none(), "a sender has two flows");
        debug_assert!(self.flows().len() <= FLOWS, "more flows than allowed");
        count(&self.counters.flows);
        tokio::spawn(self.clone().answer(sender, outside.clone()));
        Ok(outside)
    }

    /// Relays answers to the sender until none has arrived for a while.
    async fn answer(self: Arc<Self>, sender: SocketAddr, outside: Arc<UdpSocket>) {
        let idle = if self.target.port() == DNS {
            IDLE_RESOLVER
        } else {
            IDLE
        };
        let mut datagram = vec![0; LONGEST];
        while let Ok(answer) = timeout(idle, outside.recv(&mut datagram)).await {
            let sent = match answer {
                Ok(length) => self.inside.send_to(&datagram[..length], sender).await,
                Err(error) => Err(error),
            };
            if sent.is_err() {
                count(&self.counters.datagrams_lost);
            }
        }
        self.flows().remove(&sender);
    }

    fn flows(&self) -> std::sync::MutexGuard<'_, HashMap<SocketAddr, Arc<UdpSocket>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

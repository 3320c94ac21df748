//! Datagrams: each sender inside gets a socket outside, until no answer has arrived for a while.
//!
//! A destination may have several targets, as the addresses of one name. A flow uses the first of them that does not
//! refuse its first datagram. Later flows start with the target that answered last.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    targets: Arc<[SocketAddr]>,
    /// Index of the target that answered last.
    preferred: AtomicUsize,
    flows: Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>,
    counters: Arc<RelayCounters>,
}

/// A flow as its task sees it.
struct DatagramFlow {
    sender: SocketAddr,
    outside: Arc<UdpSocket>,
    /// Index of its target.
    target: usize,
    /// Its first datagram, for the targets that remain if this one refuses it. None after the first answer.
    first: Option<Vec<u8>>,
    /// Targets that remain: indices modulo the number of targets.
    remaining: Range<usize>,
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
        targets,
        preferred: AtomicUsize::default(),
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
        let Some(outside) = known else {
            return self.begin(sender, datagram).await;
        };
        match outside.send(datagram).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // The kernel reports the refusal of an earlier datagram here, once, and has not sent this one.
                count(&self.counters.datagrams_lost);
                outside.send(datagram).await.map(|_| ())
            }
            sent => sent.map(|_| ()),
        }
    }

    async fn begin(self: &Arc<Self>, sender: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        if self.flows().len() >= FLOWS {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let preferred = self.preferred.load(Ordering::Relaxed);
        let mut remaining = preferred..preferred + self.targets.len();
        let (target, outside) = self.open(&mut remaining, datagram).await?;
        let earlier = self.flows().insert(sender, outside.clone());
        debug_assert!(earlier.is_none(), "a sender has two flows");
        debug_assert!(self.flows().len() <= FLOWS, "more flows than allowed");
        count(&self.counters.flows);
        let has_others = self.targets.len() > 1;
        let flow = DatagramFlow {
            sender,
            outside,
            target,
            first: has_others.then(|| datagram.to_vec()),
            remaining,
        };
        tokio::spawn(self.clone().answer(flow));
        Ok(())
    }

    /// Sends the first datagram of a flow to the first of `remaining` that can be reached. Returns the index of the
    /// target and its socket.
    async fn open(
        &self,
        remaining: &mut Range<usize>,
        datagram: &[u8],
    ) -> io::Result<(usize, Arc<UdpSocket>)> {
        let mut failure = io::ErrorKind::AddrNotAvailable.into();
        for index in remaining {
            let target = index % self.targets.len();
            match connected(self.targets[target], datagram).await {
                Ok(outside) => return Ok((target, Arc::new(outside))),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Relays answers to the sender until none has arrived for a while, or until every target has refused.
    async fn answer(self: Arc<Self>, mut flow: DatagramFlow) {
        let idle = if self.targets[flow.target].port() == DNS {
            IDLE_RESOLVER
        } else {
            IDLE
        };
        let mut datagram = vec![0; LONGEST];
        while let Ok(answer) = timeout(idle, flow.outside.recv(&mut datagram)).await {
            let Ok(length) = answer else {
                if self.pass_over(&mut flow).await.is_err() {
                    break;
                }
                continue;
            };
            if flow.first.take().is_some() {
                self.preferred.store(flow.target, Ordering::Relaxed);
            }
            let sent = self.inside.send_to(&datagram[..length], flow.sender).await;
            if sent.is_err() {
                count(&self.counters.datagrams_lost);
            }
        }
        self.flows().remove(&flow.sender);
    }

    /// Moves a flow whose target has refused a datagram to the next target, unless a target has answered before.
    ///
    /// Fails if no target is left. The sender's next datagram then starts again with all of them.
    async fn pass_over(&self, flow: &mut DatagramFlow) -> io::Result<()> {
        let Some(first) = &flow.first else {
            count(&self.counters.datagrams_lost);
            return Ok(());
        };
        let opened = self.open(&mut flow.remaining, first).await;
        let (target, outside) = opened.inspect_err(|_| count(&self.counters.datagrams_lost))?;
        self.flows().insert(flow.sender, outside.clone());
        (flow.target, flow.outside) = (target, outside);
        Ok(())
    }

    fn flows(&self) -> std::sync::MutexGuard<'_, HashMap<SocketAddr, Arc<UdpSocket>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket connected to `target` that has sent it a datagram.
async fn connected(target: SocketAddr, datagram: &[u8]) -> io::Result<UdpSocket> {
    let any: SocketAddr = match target {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let outside = UdpSocket::bind(any).await?;
    outside.connect(target).await?;
    outside.send(datagram).await?;
    Ok(outside)
}

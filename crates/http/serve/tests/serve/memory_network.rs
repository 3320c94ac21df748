//! A network in memory: an environment with streams that lose nothing, names, fixed clocks and a seed.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use posthaste_serve::Environment;
use posthaste_serve::environment::{Simulated, run_in};
use posthaste_serve::simulated::{SimulatedListener, SimulatedStream};
use posthaste_units::{Instant, Seed, Span, Stream};
use rand::Rng as _;

/// Wall-clock time at the start, in seconds since the epoch: 14 November 2023.
const START: u64 = 1_700_000_000;

/// Bytes in transit in each direction of a connection.
const IN_TRANSIT: usize = 64 << 10;

/// Lifetime of the addresses of a name.
const TTL: Duration = Duration::from_secs(5);

/// One host that is client and server at once.
pub(crate) struct MemoryNetwork {
    start: tokio::time::Instant,
    seed: Seed,
    streams: Mutex<BTreeMap<String, Stream>>,
    listeners: Mutex<BTreeMap<SocketAddr, Arc<MemoryListener>>>,
    /// Client ports used so far.
    ports: Mutex<u16>,
    names: BTreeMap<String, IpAddr>,
}

struct MemoryListener {
    address: SocketAddr,
    queue: Mutex<AcceptQueue>,
}

#[derive(Default)]
struct AcceptQueue {
    connections: VecDeque<(SimulatedStream, SocketAddr)>,
    wakers: Vec<Waker>,
}

/// Runs `work` in a network of its own with these names, in paused time. The runtime has no sockets.
pub(crate) fn simulate<T, W: Future<Output = T>>(
    seed: u64,
    names: &[(&str, IpAddr)],
    work: impl FnOnce(Arc<MemoryNetwork>) -> W,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let names = names.iter();
    runtime.unwrap().block_on(async {
        let network = Arc::new(MemoryNetwork {
            start: tokio::time::Instant::now(),
            seed: Seed(seed),
            streams: Mutex::default(),
            listeners: Mutex::default(),
            ports: Mutex::new(40_000),
            names: names.map(|(name, ip)| ((*name).to_owned(), *ip)).collect(),
        });
        run_in(network.clone(), work(network)).await
    })
}

impl MemoryNetwork {
    fn open(&self, address: SocketAddr) -> io::Result<SimulatedStream> {
        let listeners = self.listeners.lock().unwrap();
        let listener = listeners.get(&address);
        let listener = listener.ok_or(io::ErrorKind::ConnectionRefused)?;
        let mut port = self.ports.lock().unwrap();
        *port += 1;
        let (near, far) = tokio::io::duplex(IN_TRANSIT);
        let client = SocketAddr::from(([192, 0, 2, 1], *port));
        let mut queue = listener.queue.lock().unwrap();
        let accepted = (SimulatedStream::plain(far), client);
        queue.connections.push_back(accepted);
        queue.wakers.drain(..).for_each(Waker::wake);
        Ok(SimulatedStream::plain(near))
    }
}

impl Environment for MemoryNetwork {
    fn now(&self) -> Instant {
        Instant::ORIGIN + Span::from(self.start.elapsed())
    }

    fn wall_clock(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(START) + self.start.elapsed()
    }

    fn processor_time(&self) -> Span {
        Span::ZERO
    }

    fn fill_random(&self, stream: &str, bytes: &mut [u8]) {
        let mut streams = self.streams.lock().unwrap();
        let new = || self.seed.stream(stream);
        let stream = streams.entry(stream.to_owned()).or_insert_with(new);
        stream.fill_bytes(bytes);
    }

    fn listen(&self, address: SocketAddr, _: u32) -> io::Result<Arc<dyn SimulatedListener>> {
        let listener = Arc::new(MemoryListener {
            address,
            queue: Mutex::default(),
        });
        let mut listeners = self.listeners.lock().unwrap();
        match listeners.insert(address, listener.clone()) {
            None => Ok(listener),
            Some(_) => Err(io::ErrorKind::AddrInUse.into()),
        }
    }

    fn connect(&self, address: SocketAddr) -> Simulated<io::Result<SimulatedStream>> {
        let opened = self.open(address);
        Box::pin(async { opened })
    }

    fn look_up(&self, name: &str) -> Simulated<io::Result<(Vec<IpAddr>, Duration)>> {
        let address = self.names.get(name).copied();
        let found = (Vec::from_iter(address), TTL);
        Box::pin(async { Ok(found) })
    }
}

impl SimulatedListener for MemoryListener {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(SimulatedStream, SocketAddr)>> {
        let mut queue = self.queue.lock().unwrap();
        match queue.connections.pop_front() {
            Some(connection) => Poll::Ready(Ok(connection)),
            None => {
                queue.wakers.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_awaited(&self) -> bool {
        !self.queue.lock().unwrap().connections.is_empty()
    }
}

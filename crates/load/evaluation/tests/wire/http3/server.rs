//! A scripted HTTP/3 server: QUIC by quinn-proto over a UDP socket, frames of HTTP/3 by hand, so that it can also break
//! the rules, and a line that loses, repeats and delays its datagrams.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use posthaste_units::Stream;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, RandomConnectionIdGenerator,
    ServerConfig, TransportConfig, VarInt,
};
use rand::RngExt as _;

use super::identity;
use super::packets::version_negotiation;
use super::served::ServedClient;

pub(super) use super::frames::{
    CONTROL, DATA, GOAWAY, HEADERS, SETTINGS, STATUS_200, STATUS_500, frame, reply,
};
pub(super) use super::script::{
    ArrivedRequest, Greeting, LossyLine, ReplyAct, ServerScript, Tickets,
};

/// Everything that a server saw.
#[derive(Clone, Default)]
pub(super) struct ServerLog {
    pub(super) connections: usize,
    pub(super) requests: Vec<ArrivedRequest>,
    pub(super) datagrams: usize,
    /// Initial packets of clients.
    pub(super) initials: usize,
}

impl ServerScript {
    /// Starts the server.
    pub(super) fn start(self) -> QuicServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (log, stop) = (Arc::<Mutex<ServerLog>>::default(), Arc::default());
        let mut running = RunningServer::new(self, socket, Arc::clone(&log));
        let ends = Arc::clone(&stop);
        std::thread::spawn(move || running.serve(&ends));
        QuicServer { address, log, stop }
    }
}

/// A server that acts by a script until it is dropped.
pub(super) struct QuicServer {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<ServerLog>>,
    stop: Arc<AtomicBool>,
}

impl QuicServer {
    pub(super) fn log(&self) -> ServerLog {
        lock(&self.log).clone()
    }
}

impl Drop for QuicServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn lock(log: &Mutex<ServerLog>) -> MutexGuard<'_, ServerLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A configuration that knows no tickets yet.
fn config(script: &ServerScript, tickets: Tickets) -> ServerConfig {
    let mut tls = identity::tls(script.alpn);
    if tickets != Tickets::None {
        // The only value that QUIC permits (RFC 9001, section 4.6.1).
        tls.max_early_data_size = u32::MAX;
    }
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(script.streams))
        .stream_receive_window(VarInt::from_u32(script.window))
        // What is unacknowledged stays in the memory of the test.
        .send_window(256 << 10)
        .mtu_discovery_config(None);
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config
}

struct RunningServer {
    script: ServerScript,
    socket: UdpSocket,
    endpoint: Endpoint,
    /// Configuration of further connections.
    config: Arc<ServerConfig>,
    tickets: Tickets,
    clients: BTreeMap<usize, (ConnectionHandle, ServedClient)>,
    log: Arc<Mutex<ServerLog>>,
    random: Stream,
    /// Datagrams that a later one overtakes.
    held: Vec<(SocketAddr, Vec<u8>)>,
}

impl RunningServer {
    fn new(script: ServerScript, socket: UdpSocket, log: Arc<Mutex<ServerLog>>) -> Self {
        let server = Arc::new(config(&script, Tickets::None));
        Self {
            endpoint: new_endpoint(Some(Arc::clone(&server))),
            config: server,
            tickets: Tickets::None,
            random: script.seed.stream("line"),
            script,
            socket,
            clients: BTreeMap::new(),
            log,
            held: Vec::new(),
        }
    }

    fn serve(&mut self, stop: &AtomicBool) {
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            let due = self
                .clients
                .values_mut()
                .filter_map(|(_, client)| client.next_due());
            let until = due.min().unwrap_or(now + Duration::from_millis(20));
            let wait = until.saturating_duration_since(now);
            let wait = wait.clamp(Duration::from_micros(100), Duration::from_millis(20));
            self.socket.set_read_timeout(Some(wait)).unwrap();
            match self.socket.recv_from(&mut buffer) {
                Ok((length, source)) => self.arrive(source, &buffer[..length]),
                Err(error) if is_timeout(&error) => {}
                // The client's port is closed.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => panic!("{error}"),
            }
            self.advance();
        }
    }

    /// Passes a datagram of a client through the line.
    fn arrive(&mut self, source: SocketAddr, bytes: &[u8]) {
        // The long header of version 1, type Initial (RFC 9000, section 17.2).
        let is_initial = bytes[0] & 0xf0 == 0xc0;
        {
            let mut log = lock(&self.log);
            log.datagrams += 1;
            log.initials += usize::from(is_initial);
        }
        if is_initial
            && self
                .random
                .random_bool((self.script.greeting)().other_version)
        {
            return self.send(source, &version_negotiation(bytes));
        }
        for _ in 0..self.copies() {
            let mut answer = Vec::new();
            let now = Instant::now();
            let event = self
                .endpoint
                .handle(now, source, None, None, bytes.into(), &mut answer);
            match event {
                Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, source),
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    let mut clients = self.clients.values_mut();
                    if let Some((_, client)) = clients.find(|(other, _)| *other == handle) {
                        client.transport.handle_event(event);
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    self.send(transmit.destination, &answer[..transmit.size]);
                }
                None => {}
            }
        }
    }

    fn accept(&mut self, incoming: quinn_proto::Incoming, source: SocketAddr) {
        let tickets = (self.script.tickets)();
        if tickets != self.tickets || tickets == Tickets::Rejected {
            // Connections keep their configuration, with the tickets that it knows.
            self.tickets = tickets;
            self.config = Arc::new(config(&self.script, tickets));
        }
        let mut answer = Vec::new();
        let retries = self.random.random_bool((self.script.greeting)().retry);
        if retries && incoming.may_retry() {
            let transmit = self.endpoint.retry(incoming, &mut answer).unwrap();
            return self.send(source, &answer[..transmit.size]);
        }
        let config = Arc::clone(&self.config);
        match self
            .endpoint
            .accept(incoming, Instant::now(), &mut answer, Some(config))
        {
            Ok((handle, transport)) => {
                let mut log = lock(&self.log);
                let number = log.connections;
                log.connections += 1;
                self.clients
                    .insert(number, (handle, ServedClient::new(number, transport)));
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.send(source, &answer[..transmit.size]);
                }
            }
        }
    }

    /// Handles what has arrived and what is due, and sends the datagrams of all connections.
    fn advance(&mut self) {
        let now = Instant::now();
        let (mut forgets, mut restarts) = (false, false);
        let mut outgoing = Vec::new();
        for (handle, client) in self.clients.values_mut() {
            if client
                .transport
                .poll_timeout()
                .is_some_and(|due| due <= now)
            {
                client.transport.handle_timeout(now);
            }
            while let Some(event) = client.transport.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    client.transport.handle_event(event);
                }
            }
            for (stream, arrival) in client.poll(&self.script) {
                lock(&self.log).requests.push(arrival);
                let act = (self.script.act)(&arrival);
                forgets |= matches!(act, ReplyAct::Forget | ReplyAct::Restart);
                restarts |= matches!(act, ReplyAct::Restart);
                client.act(act, stream, now);
            }
            client.write_due(now);
            let mut bytes = Vec::new();
            while let Some(transmit) = client.transport.poll_transmit(now, 1, &mut bytes) {
                outgoing.push((transmit.destination, bytes[..transmit.size].to_vec()));
                bytes.clear();
            }
        }
        for (destination, bytes) in outgoing {
            self.send(destination, &bytes);
        }
        // The endpoint uses their handles again.
        self.clients
            .retain(|_, (_, client)| !client.transport.is_drained());
        if forgets {
            self.clients.clear();
            self.endpoint = new_endpoint(restarts.then(|| Arc::clone(&self.config)));
        }
    }

    /// Number of copies of a datagram that the line passes on.
    fn copies(&mut self) -> usize {
        let LossyLine {
            loss, duplication, ..
        } = (self.script.line)();
        match self.random.random::<f64>() {
            chance if chance < loss => 0,
            chance if chance < loss + duplication => 2,
            _ => 1,
        }
    }

    /// Sends a datagram through the line.
    fn send(&mut self, destination: SocketAddr, bytes: &[u8]) {
        if self.random.random_bool((self.script.line)().reordering) {
            return self.held.push((destination, bytes.to_vec()));
        }
        for _ in 0..self.copies() {
            // The client may have closed its port.
            let _ = self.socket.send_to(bytes, destination);
        }
        for (destination, bytes) in std::mem::take(&mut self.held) {
            let _ = self.socket.send_to(&bytes, destination);
        }
    }
}

/// The key of stateless resets is constant, so that a server without memory of a connection can reset it.
fn new_endpoint(config: Option<Arc<ServerConfig>>) -> Endpoint {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[7; 64]);
    let mut endpoint = EndpointConfig::new(Arc::new(key));
    // Resets answer each datagram of a forgotten connection.
    endpoint.min_reset_interval(Duration::ZERO);
    // Identifiers of the default kind are valid for one endpoint only.
    endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(8)));
    Endpoint::new(Arc::new(endpoint), config, false, None)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

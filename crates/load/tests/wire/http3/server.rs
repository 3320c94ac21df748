//! A scripted HTTP/3 server: QUIC by quinn-proto over a UDP socket, frames of HTTP/3 by hand, so that it can also break
//! the rules, and a line that loses, repeats and delays its datagrams.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use posthaste_units::{Seed, Stream};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    RandomConnectionIdGenerator, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use rand::RngExt as _;

use super::identity;
use super::packets::version_negotiation;

pub(super) use super::frames::{
    CONTROL, DATA, GOAWAY, HEADERS, SETTINGS, STATUS_200, STATUS_500, frame, reply,
};

/// The act of a server for a complete request.
#[derive(Clone)]
pub(super) enum ReplyAct {
    /// Sends these bytes after a time, and ends the stream.
    Send(Vec<u8>, Duration),
    /// Sends these bytes and leaves the stream open.
    Begin(Vec<u8>),
    /// Sends these bytes, and resets the stream with this code.
    Reset(Vec<u8>, u32),
    /// Sends these bytes on the control stream, and answers with a whole reply.
    Control(Vec<u8>),
    /// Sends these bytes on a new unidirectional stream, and answers with a whole reply.
    Stream(Vec<u8>),
    /// Sends STOP_SENDING and a whole reply.
    Stop(u32),
    /// Closes the connection with this code.
    Close(u32),
    /// Forgets all connections and accepts no others: answers to their datagrams are stateless resets.
    Forget,
    /// Forgets all connections, as a server that was started again: it accepts others.
    Restart,
    /// Nothing.
    Ignore,
}

/// One request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedRequest {
    pub(super) connection: usize,
    /// Number of the request on its connection, from 0.
    pub(super) number: usize,
    /// Bytes of its stream.
    pub(super) length: usize,
    /// True if it arrived before the end of the handshake.
    pub(super) is_early: bool,
}

/// Everything that a server saw.
#[derive(Clone, Default)]
pub(super) struct ServerLog {
    pub(super) connections: usize,
    pub(super) requests: Vec<ArrivedRequest>,
    pub(super) datagrams: usize,
    /// Initial packets of clients.
    pub(super) initials: usize,
}

/// Treatment of tickets for early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tickets {
    /// The server issues tickets for resumption only.
    #[default]
    None,
    /// The server accepts early data with its tickets.
    Accepted,
    /// The server issues tickets for early data and forgets them, as after a restart.
    Rejected,
}

/// Probabilities of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossyLine {
    pub(super) loss: f64,
    pub(super) duplication: f64,
    /// A datagram is held back until a later one.
    pub(super) reordering: f64,
}

/// Probabilities of answers to Initial packets, other than to accept the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Greeting {
    /// A Retry, unless the packet has the token of an earlier one.
    pub(super) retry: f64,
    /// Version Negotiation without the version of the client. The packet is lost.
    pub(super) other_version: f64,
}

impl Greeting {
    /// A Retry to each new client.
    pub(super) fn retries() -> Self {
        Self {
            retry: 1.0,
            ..Self::default()
        }
    }
}

/// Behaviour of a server.
pub(super) struct ServerScript {
    /// Bytes that begin its control stream. None if it opens none.
    pub(super) control: Option<Vec<u8>>,
    /// Requests at a time.
    pub(super) streams: u32,
    /// Bytes of a request's stream that it accepts ahead of reading.
    pub(super) window: u32,
    pub(super) line: Box<dyn Fn() -> LossyLine + Send>,
    /// Called for each new connection.
    pub(super) tickets: Box<dyn Fn() -> Tickets + Send>,
    /// Called for each Initial packet of a client.
    pub(super) greeting: Box<dyn Fn() -> Greeting + Send>,
    pub(super) alpn: &'static [u8],
    pub(super) seed: Seed,
    pub(super) act: Box<dyn Fn(&ArrivedRequest) -> ReplyAct + Send>,
}

impl ServerScript {
    /// A good server that acts so.
    pub(super) fn new(act: impl Fn(&ArrivedRequest) -> ReplyAct + Send + 'static) -> Self {
        Self {
            control: Some(CONTROL.to_vec()),
            streams: 100,
            window: 1 << 20,
            line: Box::new(LossyLine::default),
            tickets: Box::new(Tickets::default),
            greeting: Box::new(Greeting::default),
            alpn: b"h3",
            seed: Seed(1),
            act: Box::new(act),
        }
    }

    /// A good server that answers each request with `hello` after `delay`.
    pub(super) fn answering(delay: Duration) -> Self {
        Self::new(move |_| ReplyAct::Send(reply(b"hello"), delay))
    }

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
        .mtu_discovery_config(None);
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config
}

/// A request that is being received.
#[derive(Default)]
struct PartialRequest {
    length: usize,
    is_whole: bool,
}

/// A connection of a client.
struct ServedClient {
    number: usize,
    transport: Connection,
    requests: BTreeMap<StreamId, PartialRequest>,
    arrived: usize,
    control: Option<StreamId>,
    /// Bytes that wait for the window of the client: stream, bytes, and the end of the stream.
    unsent: Vec<(StreamId, Vec<u8>, bool)>,
    due: BinaryHeap<Reverse<(Instant, StreamId, Vec<u8>)>>,
    resets: Vec<(Instant, StreamId, u32)>,
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

impl ServedClient {
    fn new(number: usize, transport: Connection) -> Self {
        Self {
            number,
            transport,
            requests: BTreeMap::new(),
            arrived: 0,
            control: None,
            unsent: Vec::new(),
            due: BinaryHeap::new(),
            resets: Vec::new(),
        }
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        // The client may have stopped it.
        let _ = self
            .transport
            .send_stream(stream)
            .reset(VarInt::from_u32(code));
    }

    fn next_due(&mut self) -> Option<Instant> {
        let reply = self.due.peek().map(|Reverse((due, ..))| *due);
        [reply, self.transport.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Reads the streams. Returns complete requests.
    fn poll(&mut self, script: &ServerScript) -> Vec<(StreamId, ArrivedRequest)> {
        let mut readable = BTreeSet::new();
        while let Some(event) = self.transport.poll() {
            match event {
                Event::Connected => {
                    if let Some(bytes) = &script.control {
                        self.control = self.transport.streams().open(Dir::Uni);
                        let control = self.control.expect("clients permit a control stream");
                        self.unsent.push((control, bytes.clone(), false));
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.transport.streams().accept(dir) {
                        readable.insert(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => drop(readable.insert(id)),
                _ => {}
            }
        }
        let mut arrivals = Vec::new();
        for id in readable {
            let request = self.requests.entry(id).or_default();
            let mut stream = self.transport.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else {
                continue;
            };
            let mut is_whole = false;
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => request.length += chunk.bytes.len(),
                    Ok(None) => break is_whole = true,
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
            if is_whole && id.dir() == Dir::Bi && !request.is_whole {
                request.is_whole = true;
                let arrival = ArrivedRequest {
                    connection: self.number,
                    number: self.arrived,
                    length: request.length,
                    is_early: self.transport.is_handshaking(),
                };
                arrivals.push((id, arrival));
                self.arrived += 1;
            }
        }
        arrivals
    }

    fn act(&mut self, act: ReplyAct, stream: StreamId, now: Instant) {
        // A reply follows frames of other streams, so that the client reads these first.
        let (whole, later) = (reply(b"hello"), now + Duration::from_millis(50));
        match act {
            ReplyAct::Send(bytes, delay) => self.due.push(Reverse((now + delay, stream, bytes))),
            ReplyAct::Begin(bytes) => self.unsent.push((stream, bytes, false)),
            ReplyAct::Reset(bytes, code) if bytes.is_empty() => self.reset(stream, code),
            ReplyAct::Reset(bytes, code) => {
                self.unsent.push((stream, bytes, false));
                // A reset overtakes bytes that have not left.
                self.resets
                    .push((now + Duration::from_millis(20), stream, code));
            }
            ReplyAct::Control(bytes) => {
                if let Some(control) = self.control {
                    self.unsent.push((control, bytes, false));
                }
                self.due.push(Reverse((later, stream, whole)));
            }
            ReplyAct::Stream(bytes) => {
                if let Some(other) = self.transport.streams().open(Dir::Uni) {
                    self.unsent.push((other, bytes, false));
                }
                self.due.push(Reverse((later, stream, whole)));
            }
            ReplyAct::Stop(code) => {
                let _ = self
                    .transport
                    .recv_stream(stream)
                    .stop(VarInt::from_u32(code));
                self.unsent.push((stream, whole, true));
            }
            ReplyAct::Close(code) => {
                self.transport
                    .close(now, VarInt::from_u32(code), "bye".into());
            }
            ReplyAct::Forget | ReplyAct::Restart | ReplyAct::Ignore => {}
        }
    }

    /// Writes the replies that are due, as far as the windows of the client permit.
    fn write_due(&mut self, now: Instant) {
        for (due, stream, code) in std::mem::take(&mut self.resets) {
            match due <= now {
                true => self.reset(stream, code),
                false => self.resets.push((due, stream, code)),
            }
        }
        while self
            .due
            .peek()
            .is_some_and(|Reverse((due, ..))| *due <= now)
        {
            let Reverse((_, stream, bytes)) = self.due.pop().expect("a reply is due");
            self.unsent.push((stream, bytes, true));
        }
        for (stream, mut bytes, is_last) in std::mem::take(&mut self.unsent) {
            let mut sending = self.transport.send_stream(stream);
            // A stream that the client has stopped needs no more.
            let written = match sending.write(&bytes) {
                Ok(count) => count,
                Err(quinn_proto::WriteError::Blocked) => 0,
                Err(_) => continue,
            };
            bytes.drain(..written);
            if bytes.is_empty() {
                if is_last {
                    let _ = sending.finish();
                }
            } else {
                self.unsent.push((stream, bytes, is_last));
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

//! A scripted HTTP/2 server: frames by hand, so that it can also break the rules.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::server::serve;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// `:status 200` and `:status 500` in the static table of RFC 7541, appendix A.
pub(super) const STATUS_200: &[u8] = &[0x88];
pub(super) const STATUS_500: &[u8] = &[0x8e];

/// A frame as bytes.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A complete reply of a head and a body.
pub(super) fn reply(stream: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, stream, STATUS_200);
    bytes.extend(frame(DATA, END_STREAM, stream, body));
    bytes
}

pub(super) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(super) fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    frame(GOAWAY, 0, 0, &payload)
}

pub(super) fn setting(id: u16, value: u32) -> Vec<u8> {
    let mut payload = id.to_be_bytes().to_vec();
    payload.extend_from_slice(&value.to_be_bytes());
    payload
}

pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The act of a server for a complete request.
pub(super) enum ServerAct {
    /// Sends these bytes after a time.
    Send(Vec<u8>, Duration),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Nothing.
    Ignore,
}

/// One request as it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) connection: usize,
    /// Number of the request on its connection, from 0.
    pub(super) number: usize,
    pub(super) stream: u32,
    /// Bytes of its body.
    pub(super) body: usize,
}

/// Everything that a server saw.
#[derive(Default)]
pub(super) struct ServerLog {
    pub(super) connections: usize,
    pub(super) requests: Vec<Arrival>,
    /// Largest number of open streams on a connection.
    pub(super) most_open: usize,
    pub(super) resets: usize,
}

/// A server that acts by a script.
#[derive(Clone)]
pub(super) struct StreamServer {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<ServerLog>>,
}

impl StreamServer {
    /// Starts a server with these SETTINGS. `act` decides about each complete request.
    pub(super) fn start(
        settings: Vec<u8>,
        act: impl Fn(&Arrival) -> ServerAct + Send + Sync + Clone + 'static,
    ) -> Self {
        Self::scripted(move || settings.clone(), act)
    }

    /// Starts a server with SETTINGS for each connection. `act` decides about each complete request.
    pub(super) fn scripted(
        settings: impl Fn() -> Vec<u8> + Send + Sync + Clone + 'static,
        act: impl Fn(&Arrival) -> ServerAct + Send + Sync + Clone + 'static,
    ) -> Self {
        let log = Arc::<Mutex<ServerLog>>::default();
        let of_server = log.clone();
        let address = serve(move |stream: TcpStream| {
            let connection = {
                let mut log = lock(&of_server);
                log.connections += 1;
                log.connections - 1
            };
            // An end of the client is no error.
            let mut conversation = Conversation {
                socket: stream,
                connection,
                log: &of_server,
                act: &act,
                due: BinaryHeap::new(),
                open: BTreeMap::new(),
                number: 0,
                is_over: false,
            };
            let _ = conversation.hold(&settings());
        });
        Self { address, log }
    }

    /// Starts a server that answers each request with `hello` after `delay`.
    pub(super) fn answering(settings: Vec<u8>, delay: Duration) -> Self {
        Self::start(settings, move |arrival| {
            ServerAct::Send(reply(arrival.stream, b"hello"), delay)
        })
    }

    /// Starts a server that sends these bytes after the head of the first request, which need not be complete.
    pub(super) fn greeting(bytes: Vec<u8>) -> Self {
        let address = serve(move |mut stream| {
            let mut received = vec![0; 24];
            let mut piece = [0; 65_536];
            if stream.write_all(&frame(SETTINGS, 0, 0, &[])).is_err()
                || stream.read_exact(&mut received).is_err()
            {
                return;
            }
            received.clear();
            let mut is_answered = false;
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                received.extend_from_slice(&piece[..length]);
                while let Some((kind, ..)) = next_frame(&mut received) {
                    if kind == HEADERS && !is_answered {
                        is_answered = stream.write_all(&bytes).is_ok();
                    }
                }
            }
        });
        Self {
            address,
            log: Arc::default(),
        }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, ServerLog> {
        lock(&self.log)
    }
}

fn lock(log: &Mutex<ServerLog>) -> MutexGuard<'_, ServerLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes due at an instant, in the order of their requests.
type DueBytes = Reverse<(Instant, usize, Vec<u8>)>;

/// One connection of a client.
struct Conversation<'c, A> {
    socket: TcpStream,
    connection: usize,
    log: &'c Mutex<ServerLog>,
    act: &'c A,
    due: BinaryHeap<DueBytes>,
    /// Open streams with the bytes of their bodies.
    open: BTreeMap<u32, usize>,
    /// Requests so far.
    number: usize,
    is_over: bool,
}

impl<A: Fn(&Arrival) -> ServerAct> Conversation<'_, A> {
    fn hold(&mut self, settings: &[u8]) -> std::io::Result<()> {
        self.socket.set_nodelay(true)?;
        self.send(&frame(SETTINGS, 0, 0, settings))?;
        let mut preface = [0; 24];
        self.socket.read_exact(&mut preface)?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut received = Vec::new();
        while !self.is_over {
            self.send_due()?;
            self.read(&mut received)?;
            while let Some((kind, flags, stream, payload)) = next_frame(&mut received) {
                self.take(kind, flags, stream, payload.len())?;
                if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                    self.answer(stream)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes)
    }

    fn send_due(&mut self) -> std::io::Result<()> {
        while let Some(next) = self.due.peek() {
            if next.0.0 > Instant::now() {
                break;
            }
            let Some(Reverse((_, _, bytes))) = self.due.pop() else {
                break;
            };
            for stream in ended_streams(&bytes) {
                self.open.remove(&stream);
            }
            self.send(&bytes)?;
        }
        Ok(())
    }

    /// Reads what is there until the next bytes are due.
    fn read(&mut self, received: &mut Vec<u8>) -> std::io::Result<()> {
        let until = self.due.peek().map(|next| next.0.0);
        let wait = until.map_or(Duration::from_secs(60), |at| {
            at.saturating_duration_since(Instant::now())
        });
        let wait = wait.max(Duration::from_micros(1));
        self.socket.set_read_timeout(Some(wait))?;
        let mut piece = [0; 65_536];
        match self.socket.read(&mut piece) {
            Ok(0) => self.is_over = true,
            Ok(length) => received.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, length: usize) -> std::io::Result<()> {
        match kind {
            HEADERS => {
                self.open.insert(stream, 0);
                let mut log = lock(self.log);
                log.most_open = log.most_open.max(self.open.len());
            }
            DATA => {
                *self.open.entry(stream).or_default() += length;
                self.renew_windows(flags, stream, length)?;
            }
            SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, &[]))?,
            RST_STREAM => {
                self.open.remove(&stream);
                lock(self.log).resets += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn renew_windows(&mut self, flags: u8, stream: u32, length: usize) -> std::io::Result<()> {
        let increment = (length as u32).to_be_bytes();
        if length > 0 {
            self.send(&frame(WINDOW_UPDATE, 0, 0, &increment))?;
        }
        if length > 0 && flags & END_STREAM == 0 {
            self.send(&frame(WINDOW_UPDATE, 0, stream, &increment))?;
        }
        Ok(())
    }

    fn answer(&mut self, stream: u32) -> std::io::Result<()> {
        let arrival = Arrival {
            connection: self.connection,
            number: self.number,
            stream,
            body: self.open.get(&stream).copied().unwrap_or_default(),
        };
        self.number += 1;
        lock(self.log).requests.push(arrival);
        match (self.act)(&arrival) {
            ServerAct::Send(bytes, delay) => {
                let due = Instant::now() + delay;
                self.due.push(Reverse((due, self.number, bytes)));
            }
            ServerAct::Close(bytes) => {
                self.is_over = true;
                self.send(&bytes)?;
            }
            ServerAct::Ignore => {}
        }
        Ok(())
    }
}

/// Streams that these frames end.
fn ended_streams(bytes: &[u8]) -> Vec<u32> {
    let (mut bytes, mut ended) = (bytes.to_vec(), Vec::new());
    while let Some((kind, flags, stream, _)) = next_frame(&mut bytes) {
        if kind == RST_STREAM || matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
            ended.push(stream);
        }
    }
    ended
}

/// Takes the next complete frame: type, flags, stream, payload.
fn next_frame(bytes: &mut Vec<u8>) -> Option<(u8, u8, u32, Vec<u8>)> {
    let [l1, l2, l3, kind, flags, s1, s2, s3, s4, ..] = **bytes else {
        return None;
    };
    let length = 9 + u32::from_be_bytes([0, l1, l2, l3]) as usize;
    if bytes.len() < length {
        return None;
    }
    let payload = bytes[9..length].to_vec();
    bytes.drain(..length);
    Some((kind, flags, u32::from_be_bytes([s1, s2, s3, s4]), payload))
}

//! A scripted HTTP/2 server: frames by hand, so that it can also break the rules.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// What a server does with a request that is complete.
pub(super) enum Act {
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
pub(super) struct Log {
    pub(super) connections: usize,
    pub(super) requests: Vec<Arrival>,
    /// Largest number of open streams on a connection.
    pub(super) most_open: usize,
    pub(super) resets: usize,
}

/// A server that acts by a script.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

impl Server {
    /// Starts a server with these SETTINGS. `act` decides about each complete request.
    pub(super) fn start(
        settings: Vec<u8>,
        act: impl Fn(&Arrival) -> Act + Send + Sync + Clone + 'static,
    ) -> Self {
        let log = Arc::<Mutex<Log>>::default();
        let of_server = log.clone();
        let address = serve(move |stream: TcpStream| {
            let connection = {
                let mut log = lock(&of_server);
                log.connections += 1;
                log.connections - 1
            };
            // An end of the client is no error.
            let _ = converse(stream, connection, &settings, &of_server, &act);
        });
        Self { address, log }
    }

    /// Starts a server that answers each request with `hello` after `delay`.
    pub(super) fn answering(settings: Vec<u8>, delay: Duration) -> Self {
        Self::start(settings, move |arrival| {
            Act::Send(reply(arrival.stream, b"hello"), delay)
        })
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes due at an instant, in the order of their requests.
type DueBytes = Reverse<(Instant, usize, Vec<u8>)>;

fn converse(
    mut socket: TcpStream,
    connection: usize,
    settings: &[u8],
    log: &Mutex<Log>,
    act: &impl Fn(&Arrival) -> Act,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    socket.write_all(&frame(SETTINGS, 0, 0, settings))?;
    let mut preface = [0; 24];
    socket.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let (mut due, mut received) = (BinaryHeap::<DueBytes>::new(), Vec::new());
    let (mut open, mut number) = (std::collections::BTreeMap::<u32, usize>::new(), 0);
    loop {
        while due
            .peek()
            .is_some_and(|Reverse((at, ..))| *at <= Instant::now())
        {
            let Some(Reverse((_, _, bytes))) = due.pop() else {
                break;
            };
            for stream in ended_streams(&bytes) {
                open.remove(&stream);
            }
            socket.write_all(&bytes)?;
        }
        let next = due.peek().map(|Reverse((at, ..))| *at);
        let wait = next.map_or(Duration::from_secs(60), |at| {
            at.saturating_duration_since(Instant::now())
        });
        socket.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
        let mut piece = [0; 65_536];
        match socket.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => received.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        while let Some((kind, flags, stream, payload)) = next_frame(&mut received) {
            match kind {
                HEADERS => {
                    open.insert(stream, 0);
                    let mut log = lock(log);
                    log.most_open = log.most_open.max(open.len());
                }
                DATA => {
                    *open.entry(stream).or_default() += payload.len();
                    // The windows stay as they are.
                    let length = (payload.len() as u32).to_be_bytes();
                    if !payload.is_empty() {
                        socket.write_all(&frame(WINDOW_UPDATE, 0, 0, &length))?;
                        if flags & END_STREAM == 0 {
                            socket.write_all(&frame(WINDOW_UPDATE, 0, stream, &length))?;
                        }
                    }
                }
                SETTINGS if flags & ACK == 0 => socket.write_all(&frame(SETTINGS, ACK, 0, &[]))?,
                RST_STREAM => {
                    open.remove(&stream);
                    lock(log).resets += 1;
                }
                _ => {}
            }
            if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                let arrival = Arrival {
                    connection,
                    number,
                    stream,
                    body: open.get(&stream).copied().unwrap_or_default(),
                };
                number += 1;
                lock(log).requests.push(arrival);
                match act(&arrival) {
                    Act::Send(bytes, delay) => {
                        due.push(Reverse((Instant::now() + delay, number, bytes)))
                    }
                    Act::Close(bytes) => return socket.write_all(&bytes),
                    Act::Ignore => {}
                }
            }
        }
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

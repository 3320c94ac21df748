//! Clients that know the boundaries of replies in a connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posthaste_units::Dscp;

/// Longer than several consecutive TCP timeouts.
const PATIENCE: Duration = Duration::from_secs(120);

/// A requested reply.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) mark: Dscp,
    pub(crate) length: usize,
}

/// Observations of a client.
pub(crate) struct ClientReport {
    /// Both ends of its connection, the client's last.
    pub(crate) ends: (SocketAddr, SocketAddr),
    /// Time of the connection.
    pub(crate) since: Instant,
    /// The mark of each reply, and the offset of its end in the stream.
    pub(crate) replies: Vec<(Dscp, u32)>,
}

impl Ask {
    fn request(&self) -> String {
        let Self { mark, length } = self;
        format!("GET /{length}-{mark}-end HTTP/1.1\r\nHost: s\r\nPrefer: mark={mark}\r\n\r\n")
    }
}

/// Sends requests without TLS, one after another or all at once.
pub(crate) fn plain(address: SocketAddr, asks: &[Ask], at_once: bool) -> ClientReport {
    let mut stream = connect(address);
    let client = stream.local_addr().expect("connected");
    let since = Instant::now();
    let mut end = 0;
    let mut replies = Vec::new();
    if at_once {
        let requests: String = asks.iter().map(Ask::request).collect();
        stream.write_all(requests.as_bytes()).expect("asked");
    }
    for ask in asks {
        if !at_once {
            stream.write_all(ask.request().as_bytes()).expect("asked");
        }
        end += read_reply(&mut stream, ask.length);
        replies.push((ask.mark, end));
    }
    let ends = (address, client);
    ClientReport {
        ends,
        since,
        replies,
    }
}

/// Sends requests inside TLS, one after another.
pub(crate) fn secured(address: SocketAddr, asks: &[Ask], authority: &Path) -> ClientReport {
    let config = posthaste_serve::trust(Some(authority)).expect("a certificate");
    let name = "shop".try_into().expect("a name");
    let session = rustls::ClientConnection::new(Arc::new(config), name).expect("a session");
    let socket = connect(address);
    let client = socket.local_addr().expect("connected");
    let since = Instant::now();
    let counted = Counted { socket, read: 0 };
    let mut stream = rustls::StreamOwned::new(session, counted);
    let reply = |ask: &Ask| {
        stream.write_all(ask.request().as_bytes()).expect("asked");
        read_reply(&mut stream, ask.length);
        // No bytes follow the requested ones.
        (ask.mark, stream.sock.read)
    };
    let replies = asks.iter().map(reply).collect();
    let ends = (address, client);
    ClientReport {
        ends,
        since,
        replies,
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_nodelay(true).expect("no delay");
    stream
}

/// Reads one reply and no byte more. Returns its length.
fn read_reply(stream: &mut impl Read, length: usize) -> u32 {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", head.escape_ascii());
    stream.read_exact(&mut vec![0; length]).expect("a body");
    (head.len() + length) as u32
}

/// A socket, with the number of bytes read.
struct Counted {
    socket: TcpStream,
    read: u32,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.socket.read(into)?;
        self.read += length as u32;
        Ok(length)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

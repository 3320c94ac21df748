//! A server whose packets are made by hand, so that its handshake can break the rules of QUIC.
//!
//! It knows TLS and the protection of packets, but has no connection: it acknowledges nothing and sends nothing again.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustls::Side;
use rustls::quic::{DirectionalKeys, KeyChange, Keys, ServerConnection, Version};

use super::identity;
use super::packets::{Identifiers, integer};

pub(super) const PING: u8 = 1;
const CRYPTO: u8 = 6;
/// Datagrams of an answer that leave in each millisecond.
const BURST: usize = 20;

/// The datagrams that answer one of a client.
pub(super) type Answer = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// Returns true if a packet has a long header.
pub(super) const fn is_long(packet: &[u8]) -> bool {
    matches!(packet, [first, ..] if *first & 0x80 != 0)
}

/// Counts of datagrams, and the end of a server.
#[derive(Default)]
struct HandmadeState {
    sent: AtomicUsize,
    received: AtomicUsize,
    stops: AtomicBool,
}

/// A server that sends answers until it is dropped.
pub(super) struct HandmadeServer {
    pub(super) address: SocketAddr,
    state: Arc<HandmadeState>,
}

impl HandmadeServer {
    /// Starts a server. It calls `answer` for each datagram with a long header, with true for the first of a client.
    pub(super) fn start(mut answer: impl FnMut(&[u8], bool) -> Answer + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::<HandmadeState>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let (mut known, mut answers) = (BTreeSet::new(), Vec::new());
            let mut buffer = [0; 2_048];
            while !shared.stops.load(Ordering::Relaxed) {
                while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                    shared.received.fetch_add(1, Ordering::Relaxed);
                    let datagram = &buffer[..length];
                    if is_long(datagram) {
                        let is_first = known.insert(Identifiers::read(datagram).0.source);
                        answers.push((client, answer(datagram, is_first)));
                    }
                }
                for (client, answer) in &mut answers {
                    for datagram in answer.take(BURST) {
                        shared.sent.fetch_add(1, Ordering::Relaxed);
                        // The client may have closed its port.
                        let _ = socket.send_to(&datagram, *client);
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { address, state }
    }

    /// Datagrams sent to clients.
    pub(super) fn sent(&self) -> usize {
        self.state.sent.load(Ordering::Relaxed)
    }

    /// Datagrams received from clients.
    pub(super) fn received(&self) -> usize {
        self.state.received.load(Ordering::Relaxed)
    }
}

impl Drop for HandmadeServer {
    fn drop(&mut self) {
        self.state.stops.store(true, Ordering::Relaxed);
    }
}

/// The keys of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Initial,
    Handshake,
    /// 1-RTT packets, with a short header.
    Application,
}

/// The handshake with a client, as far as a server gets without an answer to its first flight.
pub(super) struct HandmadeHandshake {
    /// Those of the server's packets.
    pub(super) identifiers: Identifiers,
    initial: Keys,
    handshake: Keys,
    application: Keys,
    /// Number of the next packet, in whichever space.
    number: u32,
    /// The ServerHello.
    hello: Vec<u8>,
    /// The messages from EncryptedExtensions to Finished.
    rest: Vec<u8>,
}

impl HandmadeHandshake {
    /// Reads the first Initial packet of a client. `parameters` returns the transport parameters of the server for the
    /// identifiers of the client's packet and the identifier of the server.
    pub(super) fn begin(
        datagram: &[u8],
        parameters: impl FnOnce(&Identifiers, &[u8]) -> Vec<u8>,
    ) -> Self {
        let (of_client, _) = Identifiers::read(datagram);
        let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
        let suite = suite.tls13().unwrap().quic_suite().unwrap();
        let initial = suite.keys(&of_client.destination, Side::Server, Version::V1);
        let source = b"handmade".to_vec();
        let parameters = parameters(&of_client, &source);
        let tls = Arc::new(identity::tls(b"h3"));
        let mut tls = ServerConnection::new(tls, Version::V1, parameters).unwrap();
        tls.read_hs(&client_hello(datagram, &initial.remote))
            .unwrap();
        let (mut hello, mut rest) = (Vec::new(), Vec::new());
        let Some(KeyChange::Handshake { keys: handshake }) = tls.write_hs(&mut hello) else {
            panic!("the keys of the handshake follow the ServerHello")
        };
        let Some(KeyChange::OneRtt {
            keys: application, ..
        }) = tls.write_hs(&mut rest)
        else {
            panic!("the keys of the application follow the Finished")
        };
        let identifiers = Identifiers {
            destination: of_client.source,
            source,
        };
        Self {
            identifiers,
            initial,
            handshake,
            application,
            number: 0,
            hello,
            rest,
        }
    }

    /// The ServerHello, in a datagram.
    pub(super) fn hello(&mut self) -> Vec<u8> {
        self.packet(Space::Initial, &crypto(0, &self.hello.clone()))
    }

    /// The first flight without its last bytes, in datagrams.
    pub(super) fn flight(&mut self, missing: usize) -> Vec<Vec<u8>> {
        let mut datagrams = vec![self.hello()];
        let rest = self.rest[..self.rest.len() - missing].to_vec();
        for (number, bytes) in rest.chunks(1_000).enumerate() {
            let frame = crypto(1_000 * number, bytes);
            datagrams.push(self.packet(Space::Handshake, &frame));
        }
        datagrams
    }

    /// A packet with these frames.
    pub(super) fn packet(&mut self, space: Space, frames: &[u8]) -> Vec<u8> {
        // The last two bits of the first byte state the length of the number: four bytes.
        let (first, keys) = match space {
            Space::Initial => (0xc3, &self.initial.local),
            Space::Handshake => (0xe3, &self.handshake.local),
            Space::Application => (0x43, &self.application.local),
        };
        let mut payload = frames.to_vec();
        // The sample for the protection of the header begins four bytes after the begin of the number.
        payload.resize(payload.len().max(4), 0);
        let mut header = match space {
            Space::Application => [&[first], &self.identifiers.destination[..]].concat(),
            Space::Initial | Space::Handshake => self.identifiers.header(first, 1),
        };
        if space == Space::Initial {
            header.push(0);
        }
        if space != Space::Application {
            let length = 4 + payload.len() + keys.packet.tag_len();
            header.extend((0x4000 | u16::try_from(length).unwrap()).to_be_bytes());
        }
        let packet = sealed(header, self.number, payload, keys);
        self.number += 1;
        packet
    }
}

/// The header, the number of the packet and its payload, protected.
fn sealed(header: Vec<u8>, number: u32, mut payload: Vec<u8>, keys: &DirectionalKeys) -> Vec<u8> {
    let mut packet = header;
    let at = packet.len();
    packet.extend(number.to_be_bytes());
    let tag = keys
        .packet
        .encrypt_in_place(u64::from(number), &packet, &mut payload);
    packet.extend(&payload);
    packet.extend(tag.unwrap().as_ref());
    let (head, sealed) = packet.split_at_mut(at + 4);
    let (first, head) = head.split_first_mut().expect("a packet has a first byte");
    let sample = &sealed[..keys.header.sample_len()];
    let protected = keys
        .header
        .encrypt_in_place(sample, first, &mut head[at - 1..]);
    protected.unwrap();
    packet
}

/// A CRYPTO frame.
pub(super) fn crypto(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let number = |value: usize| (0x8000_0000 | u32::try_from(value).unwrap()).to_be_bytes();
    [&[CRYPTO][..], &number(offset), &number(bytes.len()), bytes].concat()
}

/// Decrypts an Initial packet of a client, and returns the bytes of its CRYPTO frames.
fn client_hello(datagram: &[u8], keys: &DirectionalKeys) -> Vec<u8> {
    let (_, rest) = Identifiers::read(datagram);
    let (token, rest) = integer(rest);
    let (length, rest) = integer(&rest[token as usize..]);
    let at = datagram.len() - rest.len();
    let mut packet = datagram[..at + length as usize].to_vec();
    let (head, sealed) = packet.split_at_mut(at + 4);
    let (first, number) = head.split_first_mut().expect("a packet has a first byte");
    let sample = &sealed[..keys.header.sample_len()];
    let opened = keys
        .header
        .decrypt_in_place(sample, first, &mut number[at - 1..]);
    opened.unwrap();
    let number_length = usize::from(packet[0] & 3) + 1;
    let (head, sealed) = packet.split_at_mut(at + number_length);
    let number = head[at..]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut frames = keys.packet.decrypt_in_place(number, head, sealed).unwrap();
    let mut hello = Vec::new();
    while let [kind, rest @ ..] = frames {
        frames = rest;
        if *kind == CRYPTO {
            let (offset, rest) = integer(rest);
            let (length, rest) = integer(rest);
            let (bytes, rest) = rest.split_at(length as usize);
            assert_eq!(offset, hello.len() as u64, "a ClientHello in order");
            hello.extend(bytes);
            frames = rest;
        }
    }
    hello
}

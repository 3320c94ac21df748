//! The relay between plain sockets of one network namespace. The way through namespaces is tested with the command.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::{DestinationSocket, Relay, Relayed, ResolvConf};
use crate::namespaces::address::SERVER;

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn relay() -> Relay {
    let (relay, _) = Relay::start(&ResolvConf::read(""), SERVER).unwrap();
    relay
}

/// A listener that forwards to another, in place of the host outside.
fn lead(relay: &Relay, outside: SocketAddr) -> SocketAddr {
    let inside = TcpListener::bind(HERE).unwrap();
    let address = inside.local_addr().unwrap();
    relay.open(DestinationSocket::Tcp(inside), &[outside]);
    address
}

fn pair(relay: &Relay) -> (TcpStream, TcpStream) {
    let outside = TcpListener::bind(HERE).unwrap();
    let client = TcpStream::connect(lead(relay, outside.local_addr().unwrap())).unwrap();
    let (server, _) = outside.accept().unwrap();
    for stream in [&client, &server] {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
    }
    (client, server)
}

/// Counters, once they satisfy `enough`.
fn eventually(relay: &Relay, enough: impl Fn(&Relayed) -> bool) -> Relayed {
    let patience = Instant::now() + Duration::from_secs(60);
    while !enough(&relay.relayed()) && Instant::now() < patience {
        thread::sleep(Duration::from_millis(2));
    }
    relay.relayed()
}

#[test]
fn each_direction_ends_by_itself() {
    let relay = relay();
    let (mut client, mut server) = pair(&relay);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    server.write_all(b"answer").unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    let expected = Relayed {
        connections: 1,
        ..Relayed::default()
    };
    assert_eq!(relay.relayed(), expected);
}

#[test]
fn resets_pass_in_both_directions() {
    let relay = relay();
    for server_resets in [false, true] {
        let (client, server) = pair(&relay);
        let (from, mut to) = if server_resets {
            (server, client)
        } else {
            (client, server)
        };
        SockRef::from(&from)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(from);
        let error = to.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(eventually(&relay, |relayed| relayed.resets == 2).resets, 2);
}

#[test]
fn a_refusal_outside_is_a_reset_inside() {
    let relay = relay();
    let closed = TcpListener::bind(HERE).unwrap().local_addr().unwrap();
    let mut client = TcpStream::connect(lead(&relay, closed)).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(relay.relayed().unreachable, 1);
}

/// A sender is stopped after some buffers if the receiver does not read.
#[test]
fn a_slow_reader_stops_its_sender() {
    let relay = relay();
    let (mut client, mut server) = pair(&relay);
    SockRef::from(&client)
        .set_send_buffer_size(64 << 10)
        .unwrap();
    client
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let chunk = vec![7; 1 << 20];
    let mut sent = 0;
    let stopped = loop {
        match client.write(&chunk) {
            Ok(bytes) => sent += bytes,
            Err(error) => break error,
        }
        assert!(sent < 256 << 20, "nothing stops the sender");
    };
    assert_eq!(stopped.kind(), ErrorKind::WouldBlock);
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match server.read(&mut buffer).unwrap() {
            0 => break,
            bytes => received += bytes,
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn many_connections_pass_at_once() {
    let relay = relay();
    let outside = TcpListener::bind(HERE).unwrap();
    let address = lead(&relay, outside.local_addr().unwrap());
    // Four descriptors for each: within the usual limit of 1,024 if the tests share a process.
    const CONNECTIONS: usize = 150;
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(&number.to_ne_bytes()).unwrap();
        let (server, _) = outside.accept().unwrap();
        open.push((number, client, server));
    }
    for (number, client, server) in &mut open {
        let mut word = [0; size_of::<usize>()];
        server.read_exact(&mut word).unwrap();
        assert_eq!(usize::from_ne_bytes(word), *number);
        server.write_all(&word).unwrap();
        client.read_exact(&mut word).unwrap();
        assert_eq!(usize::from_ne_bytes(word), *number);
    }
    assert_eq!(relay.relayed().connections, CONNECTIONS as u64);
}

#[test]
fn datagrams_find_their_senders() {
    let relay = relay();
    let outside = UdpSocket::bind(HERE).unwrap();
    let inside = UdpSocket::bind(HERE).unwrap();
    let address = inside.local_addr().unwrap();
    relay.open(
        DestinationSocket::Udp(inside),
        &[outside.local_addr().unwrap()],
    );
    let clients: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind(HERE).unwrap()).collect();
    for (number, client) in (0u8..).zip(&clients) {
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        client.send_to(&[number], address).unwrap();
    }
    let mut datagram = [0; 4];
    for _ in &clients {
        let (length, sender) = outside.recv_from(&mut datagram).unwrap();
        outside.send_to(&datagram[..length], sender).unwrap();
    }
    for (number, client) in (0u8..).zip(&clients) {
        let (length, from) = client.recv_from(&mut datagram).unwrap();
        assert_eq!((&datagram[..length], from), (&[number][..], address));
    }
    assert_eq!(relay.relayed().flows, 3);
}

/// A client whose datagrams go to `targets`.
fn datagram_client(relay: &Relay, targets: &[SocketAddr]) -> UdpSocket {
    let inside = UdpSocket::bind(HERE).unwrap();
    let client = UdpSocket::bind(HERE).unwrap();
    client.connect(inside.local_addr().unwrap()).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    relay.open(DestinationSocket::Udp(inside), targets);
    client
}

/// An address where nothing receives datagrams.
fn closed() -> SocketAddr {
    UdpSocket::bind(HERE).unwrap().local_addr().unwrap()
}

/// As where a name has an IPv6 and an IPv4 address, and its service listens at one of them.
#[test]
fn a_target_that_refuses_datagrams_is_passed_over() {
    let relay = relay();
    let outside = UdpSocket::bind(HERE).unwrap();
    let targets = [closed(), closed(), outside.local_addr().unwrap()];
    let client = datagram_client(&relay, &targets);
    let mut datagram = [0; 16];
    for number in 0..3 {
        client.send(&[number]).unwrap();
        let (length, sender) = outside.recv_from(&mut datagram).unwrap();
        assert_eq!(datagram[..length], [number]);
        outside.send_to(&datagram[..length], sender).unwrap();
        let length = client.recv(&mut datagram).unwrap();
        assert_eq!(datagram[..length], [number]);
    }
    let expected = Relayed {
        flows: 1,
        ..Relayed::default()
    };
    assert_eq!(relay.relayed(), expected);
}

#[test]
fn datagrams_that_every_target_refuses_are_counted() {
    for targets in [vec![closed()], vec![closed(), closed()]] {
        let relay = relay();
        let client = datagram_client(&relay, &targets);
        for number in 1..=3 {
            client.send(&[0]).unwrap();
            let lost = |relayed: &Relayed| relayed.datagrams_lost == number;
            assert_eq!(eventually(&relay, lost).datagrams_lost, number);
        }
    }
}

#[test]
fn dropping_the_relay_ends_what_passes() {
    let relay = relay();
    let (mut client, _server) = pair(&relay);
    drop(relay);
    // Reset or ended, but not left open.
    assert!(!matches!(client.read(&mut [0]), Ok(1..)));
}

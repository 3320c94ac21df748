//! A port of the server that leads outside, in networks by default and in others.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use posthaste_emulator::relay::{Relay, ResolvConf};
use posthaste_emulator::{RouteOptions, RunningEmulation, Subnet, Subnets};

use crate::inside::{delay, emulation};

/// A busy machine needs less.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

/// Sends everything back, over both protocols at the same port.
fn echo_service() -> SocketAddr {
    let stream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = stream.local_addr().expect("bound");
    let datagrams = UdpSocket::bind(address).expect("the same port");
    thread::spawn(move || {
        for connection in stream.incoming() {
            let mut connection = connection.expect("a connection");
            let mut bytes = [0; 4];
            connection.read_exact(&mut bytes).expect("a request");
            connection.write_all(&bytes).expect("sent back");
        }
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok((length, sender)) = datagrams.recv_from(&mut bytes) {
            datagrams
                .send_to(&bytes[..length], sender)
                .expect("sent back");
        }
    });
    address
}

fn lead(subnets: Subnets, outside: SocketAddr) -> (Relay, RunningEmulation) {
    let server = subnets.server();
    let (relay, opener) = Relay::start(&ResolvConf::read(""), server).expect("a relay");
    let emulation = emulation(delay(1)).subnets(subnets);
    let running = emulation.start_with(Some(opener)).expect("an emulation");
    let route = RouteOptions::default();
    relay
        .attach(&running.client, &running.server, &route)
        .expect("attached");
    relay
        .lead(&running.server, outside.port(), &[outside])
        .expect("a port");
    (relay, running)
}

/// One exchange over TCP, and one of a whole and of a fragmented datagram.
fn exchange(address: IpAddr, port: u16) {
    let mut stream = TcpStream::connect((address, port)).expect("connected");
    stream.set_read_timeout(PATIENCE).expect("a timeout");
    stream.write_all(b"word").expect("sent");
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).expect("an echo");
    assert_eq!(bytes, *b"word");
    let any: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0)).expect("a free port");
    socket.set_read_timeout(PATIENCE).expect("a timeout");
    for size in [9, 4000] {
        socket
            .send_to(&vec![7; size], (address, port))
            .expect("sent");
        let mut bytes = vec![0; 1 << 16];
        let (length, from) = socket.recv_from(&mut bytes).expect("an echo");
        assert_eq!((length, from), (size, (address, port).into()));
    }
}

fn exchange_with(subnets: Subnets) {
    let outside = echo_service();
    let (relay, running) = lead(subnets, outside);
    for address in running.server.addresses().both() {
        running
            .client
            .run(move || exchange(address, outside.port()));
    }
    let relayed = relay.relayed();
    assert_eq!((relayed.connections, relayed.flows), (2, 2), "{relayed:?}");
    assert_eq!(relayed.datagrams_lost, 0, "{relayed:?}");
}

pub(crate) fn both_protocols() {
    exchange_with(Subnets::default());
}

pub(crate) fn moved_networks() {
    let subnet = |text: &str| text.parse::<Subnet>().expect("a network");
    let networks = [subnet("192.168.77.4/30"), subnet("fd12:3456::/64")];
    let subnets = Subnets::new(&networks).expect("one of each version");
    assert_eq!(subnets.server().v4, Ipv4Addr::new(192, 168, 77, 6));
    exchange_with(subnets);
}

//! Packets of each protocol reach the other end, after the expected time.

use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};

use posthaste_emulator::{DEVICE, EmulationVerdict, FrameRefusal, PacketRecord, RunningEmulation};
use posthaste_link::Fate;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::inside::{ReplyService, delay, emulation, seen, servers, transact};

const ROUND_TRIP: Duration = Duration::from_millis(10);

fn start() -> RunningEmulation {
    emulation(delay(5)).start().expect("an emulation")
}

fn finish(running: RunningEmulation) {
    let outcome = running.finish().expect("an outcome");
    assert_eq!(outcome.up.bypassed.refusals().count(), 0);
    assert_eq!(outcome.down.bypassed.refusals().count(), 0);
    assert!(!matches!(outcome.verdict(), EmulationVerdict::Lost { .. }));
}

pub(crate) fn tcp() {
    let running = start();
    for address in servers() {
        let service = ReplyService {
            request: 100,
            reply: 100_000,
            processing: Duration::ZERO,
            connections: 1,
        };
        let (at, served) = service.start(&running, address);
        let taken = running.client.run(move || transact(at, 100, 100_000));
        served.join().expect("served");
        assert!(taken >= 2 * ROUND_TRIP, "{address}: {taken:?}");
    }
    let seen = seen(&running);
    assert!(
        seen.iter()
            .all(|packet_record| matches!(packet_record.fate, Fate::Delivered(_)))
    );
    assert!(
        seen.iter()
            .all(|packet_record| packet_record.length <= 1500)
    );
    let connections = seen
        .iter()
        .map(|packet_record| packet_record.connection)
        .max();
    assert_eq!(connections, Some(2));
    finish(running);
}

/// An emulation in which a datagram of that size came back from the server of each IP version.
///
/// A run without an echo is repeated if the link delivered all packets: a kernel has then dropped the datagram.
fn datagrams(size: usize) -> RunningEmulation {
    for _ in 0..3 {
        let running = start();
        if servers()
            .into_iter()
            .all(|address| is_echoed(&running, address, size))
        {
            return running;
        }
        let seen = seen(&running);
        let is_delivered = |record: &PacketRecord| matches!(record.fate, Fate::Delivered(_));
        assert!(
            !seen.is_empty() && seen.iter().all(is_delivered),
            "{seen:?}"
        );
        finish(running);
        println!("no echo of {size} bytes, and the link delivered all packets: again");
    }
    panic!("no echo in three runs");
}

/// Sends a datagram to a server, and receives it back. Returns false if it does not come back.
fn is_echoed(running: &RunningEmulation, address: IpAddr, size: usize) -> bool {
    let bind = move || UdpSocket::bind((address, 0)).expect("a free port");
    let server = running.server.run(bind);
    let at = server.local_addr().expect("bound");
    let patience = Some(Duration::from_secs(5));
    let echo = running.server.spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        server.set_read_timeout(patience).expect("a timeout");
        match server.recv_from(&mut bytes) {
            Ok((length, from)) => {
                server.send_to(&bytes[..length], from).expect("sent back");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    });
    let ask = move || {
        let any: IpAddr = match at {
            SocketAddr::V4(_) => [0; 4].into(),
            SocketAddr::V6(_) => [0u16; 8].into(),
        };
        let socket = UdpSocket::bind((any, 0)).expect("a free port");
        socket.set_read_timeout(patience).expect("a timeout");
        let start = Instant::now();
        socket.send_to(&vec![7; size], at).expect("sent");
        let mut bytes = vec![0; 1 << 16];
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("an echo: {error}"),
        };
        assert!(length == size && bytes[..size].iter().all(|byte| *byte == 7));
        Some(start.elapsed())
    };
    let taken = running.client.run(ask);
    echo.join().expect("no panic");
    assert!(
        taken.is_none_or(|taken| taken >= ROUND_TRIP),
        "{address}: {taken:?}"
    );
    taken.is_some()
}

pub(crate) fn udp() {
    let running = datagrams(1000);
    let seen = seen(&running);
    assert_eq!(seen.len(), 4);
    assert!(
        seen.iter()
            .all(|packet_record| packet_record.flow.server.port() != 0)
    );
    finish(running);
}

pub(crate) fn fragments() {
    let running = datagrams(4000);
    let seen = seen(&running);
    // Three for each datagram, in both directions and both versions.
    assert_eq!(seen.len(), 12);
    assert!(
        seen.iter()
            .all(|packet_record| packet_record.flow.protocol == 17)
    );
    assert!(
        seen.iter()
            .all(|packet_record| packet_record.flow.server.port() == 0)
    );
    finish(running);
}

pub(crate) fn ping() {
    let running = start();
    for address in servers() {
        let (domain, protocol, kind) = match address {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128),
        };
        let ask = move || {
            let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).expect("a ping socket");
            let timeout = Some(Duration::from_secs(5));
            socket.set_read_timeout(timeout).expect("a timeout");
            let at = SockAddr::from(SocketAddr::new(address, 0));
            let start = Instant::now();
            socket
                .send_to(&[kind, 0, 0, 0, 0, 0, 0, 1, 42], &at)
                .expect("sent");
            let length = (&socket).read(&mut [0; 64]).expect("an answer");
            assert_eq!(length, 9);
            start.elapsed()
        };
        let taken = running.client.run(ask);
        assert!(taken >= ROUND_TRIP, "{address}: {taken:?}");
    }
    assert_eq!(seen(&running).len(), 4);
    finish(running);
}

pub(crate) fn multicast() {
    let running = start();
    running.client.run(|| {
        let socket = UdpSocket::bind("[::]:0").expect("a free port");
        let index = rustix::net::netdevice::name_to_index(&socket, DEVICE);
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let at = SocketAddrV6::new(all_nodes, 9, 0, index.expect("the device"));
        socket.send_to(b"anybody?", at).expect("sent");
    });
    std::thread::sleep(Duration::from_millis(20));
    let outcome = running.finish().expect("an outcome");
    assert_eq!(outcome.up.bypassed.refused(FrameRefusal::Multicast), 1);
    assert_eq!(outcome.up.link.pushed.packets, 0);
}

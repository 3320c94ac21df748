//! Fragments, ICMP errors and other packets without TCP numbers.

use posthaste_link::Direction;
use posthaste_link::pattern::infer::{CapturePair, Findings};
use posthaste_units::Span;

use super::writer::{ETHERNET, FileForm, Timed, client, fragment, ip, server};
use super::*;

const RAW: FileForm = FileForm {
    link: 101,
    ..ETHERNET
};
const UDP: u8 = 17;
const MILLI: u64 = 1_000_000;

fn datagram(from: u16, to: u16, payload: usize) -> Vec<u8> {
    let mut content = [from.to_be_bytes(), to.to_be_bytes()].concat();
    content.extend((8 + payload as u16).to_be_bytes());
    content.extend([0, 0]);
    content.extend(vec![b'x'; payload]);
    content
}

/// The parts of an IPv6 packet after a fragment header (RFC 8200, section 4.5).
fn fragment_v6(down: bool, id: u32, offset: u16, more: u16, content: &[u8]) -> Vec<u8> {
    let mut extended = vec![UDP, 0];
    extended.extend((offset | more).to_be_bytes());
    extended.extend(id.to_be_bytes());
    extended.extend(content);
    let (from, to) = if down {
        (server(true).0, client(true).0)
    } else {
        (client(true).0, server(true).0)
    };
    ip(from, to, 44, 0, &extended)
}

/// Requests of one packet, replies of three fragments.
fn echoes(is_v6: bool) -> Vec<Timed> {
    const PART: usize = 1480;
    let (client, server) = (client(is_v6), server(is_v6));
    let mut packets = Vec::new();
    for n in 0..5 {
        let at = u64::from(n) * 20 * MILLI;
        let request = datagram(client.1, server.1, 1);
        packets.push((at, ip(client.0, server.0, UDP, n, &request)));
        let reply = datagram(server.1, client.1, 4000);
        for (number, part) in reply.chunks(PART).enumerate() {
            let offset = (number * PART) as u16;
            let packet = if is_v6 {
                fragment_v6(true, n.into(), offset, u16::from(number < 2), part)
            } else {
                let more = if number < 2 { 0x2000 } else { 0 };
                fragment(server.0, client.0, UDP, 100 + n, (offset / 8) | more, part)
            };
            packets.push((at + 10 * MILLI + number as u64, packet));
        }
    }
    packets
}

/// Packets in each direction, and remarks.
fn counts(packets: &[Timed]) -> (u64, u64, Remarks) {
    let (down, up, remarks) = findings(&RAW.pcap(packets), Direction::Down);
    (up.packets, down.packets, remarks)
}

#[test]
fn fragments_travel_in_the_direction_of_their_datagram() {
    for is_v6 in [false, true] {
        let (up, down, remarks) = counts(&echoes(is_v6));
        assert_eq!((up, down), (5, 15), "{is_v6}");
        assert_eq!((remarks.fragments, remarks.no_tcp), (15, 5));
        // A capture that begins with the fragments has only their ports.
        let (up, down, _) = counts(&echoes(is_v6)[1..4]);
        assert_eq!((up, down), (0, 3), "{is_v6}");
    }
}

/// Findings down, for packets sent and those of them that arrived, 10 ms later.
fn down(sent: &[Timed], arrived: &[Timed]) -> Findings {
    let mut pair = CapturePair::default();
    let mut connections = Connections::default();
    read(&*RAW.pcap(sent), &mut connections, |packet| {
        if packet.seen.direction == Direction::Down {
            pair.sent(packet.seen.at, packet.mark);
        }
    })
    .unwrap();
    let arrived: Vec<Timed> = (arrived.iter())
        .map(|(at, packet)| (at + 10 * MILLI, packet.clone()))
        .collect();
    read(&*RAW.pcap(&arrived), &mut connections, |packet| {
        if packet.seen.direction == Direction::Down {
            pair.arrived(packet.seen.at, packet.mark);
        }
    })
    .unwrap();
    pair.finish(Span::from_millis(1))
}

#[test]
fn a_lost_fragment_is_found_between_two_captures() {
    for is_v6 in [false, true] {
        let sent = echoes(is_v6);
        for (lost, position) in [(1, 1), (2, 2), (3, 3), (7, 6)] {
            let mut arrived = sent.clone();
            arrived.remove(lost);
            assert_eq!(down(&sent, &arrived).lost, [position], "{is_v6} {lost}");
        }
    }
}

/// A port unreachable of the server, and a time exceeded of a router, answer the client.
#[test]
fn icmp_errors_travel_against_the_packet_that_they_quote() {
    for is_v6 in [false, true] {
        let (client, server) = (client(is_v6), server(is_v6));
        let router = if is_v6 {
            "2001:db8:9::9".parse().unwrap()
        } else {
            "192.0.2.9".parse().unwrap()
        };
        let request = ip(client.0, server.0, UDP, 1, &datagram(client.1, server.1, 1));
        let (protocol, unreachable, exceeded) = if is_v6 { (58, 1, 3) } else { (1, 3, 11) };
        let error = |from, kind: u8| {
            let content = [&[kind, 3, 0, 0, 0, 0, 0, 0], &*request].concat();
            ip(from, client.0, protocol, 2, &content)
        };
        let packets = [
            (0, request.clone()),
            (1, error(server.0, unreachable)),
            (2, error(router, exceeded)),
        ];
        let (up, down, _) = counts(&packets);
        assert_eq!((up, down), (1, 2), "{is_v6}");
        // The capture begins with an error.
        let (up, down, _) = counts(&packets[1..]);
        assert_eq!((up, down), (0, 2), "{is_v6}");
    }
}

/// The header of a fragment may follow others, and any of them may be cut.
#[test]
fn extension_headers_are_read_as_far_as_they_go() {
    let (client, server) = (client(true), server(true));
    // Hop-by-hop options, destination options of 16 bytes, then the fragment header.
    let mut headers = vec![60, 0, 1, 4, 0, 0, 0, 0, 44, 1];
    headers.extend([1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    headers.extend([UDP, 0, 0, 1, 0, 0, 0, 9]);
    headers.extend(datagram(server.1, client.1, 40));
    let packet = ip(server.0, client.0, 0, 0, &headers);
    let whole = packet::decode(&packet).unwrap();
    assert!(whole.is_fragment && whole.related.is_some());
    assert_eq!(whole.length, packet.len());
    for length in 0..packet.len() {
        if let Some(cut) = packet::decode(&packet[..length]) {
            assert_eq!((cut.length, cut.source.0), (packet.len(), server.0));
        }
    }
    // A length of headers beyond the packet.
    let mut beyond = packet;
    beyond[41] = 200;
    for length in 0..beyond.len() {
        packet::decode(&beyond[..length]);
    }
}

/// Routers of tunnels lower the maximum segment size, which is no other packet then. Another sequence number is.
#[test]
fn a_clamped_segment_size_is_the_same_packet() {
    let syn = |size: u16, sequence: u8| {
        let mut segment = vec![0x00, 0x50, 0x9c, 0x40, 0, 0, 0, sequence, 0, 0, 0, 2];
        segment.extend([7 << 4, 0x12, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend([1, 2, 4]);
        segment.extend(size.to_be_bytes());
        segment.extend([1, 1, 0]);
        vec![(0, ip(server(false).0, client(false).0, 6, 1, &segment))]
    };
    let found = down(&syn(1460, 1), &syn(1400, 1));
    assert_eq!((found.lost.len(), found.unsent), (0, 0));
    assert_eq!(down(&syn(1460, 1), &syn(1460, 2)).unsent, 1);
}

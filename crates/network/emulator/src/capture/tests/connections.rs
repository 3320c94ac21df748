//! Connections of packets in one capture and in two.

use posthaste_link::Direction;
use posthaste_link::pattern::infer::PacketMark;

use crate::capture::Connections;
use crate::capture::packet::{DecodedPacket, End, Opens};

use super::writer::{client, server};

fn packet(source: End, destination: End, protocol: u8, opens: Opens) -> DecodedPacket {
    DecodedPacket {
        source,
        destination,
        protocol,
        length: 40,
        segment: None,
        opens,
        related: None,
        mark: PacketMark::default(),
        is_fragment: false,
        is_cut: false,
    }
}

/// Number and direction of each packet of a capture. Packets from the client go up.
fn placed(connections: &mut Connections, packets: &[(Direction, Opens)]) -> Vec<(u64, Direction)> {
    connections.begin_capture();
    let assign = |&(direction, opens): &(Direction, Opens)| {
        let (source, destination) = match direction {
            Direction::Up => (client(false), server(false)),
            Direction::Down => (server(false), client(false)),
        };
        connections.assign(&packet(source, destination, 6, opens))
    };
    packets.iter().map(assign).collect()
}

fn numbers(connections: &mut Connections, packets: &[(Direction, Opens)]) -> Vec<u64> {
    let placed = placed(connections, packets);
    placed.into_iter().map(|(number, _)| number).collect()
}

const DATA: Opens = Opens::Nothing;

fn syn(sequence: u32) -> (Direction, Opens) {
    (Direction::Up, Opens::ByClient(sequence))
}

#[test]
fn ports_used_again_are_the_same_connections_in_both_captures() {
    let mut connections = Connections::default();
    let packets = [
        syn(7),
        (Direction::Down, Opens::ByServer(7)),
        (Direction::Up, DATA),
        syn(9),
        syn(9),
        (Direction::Down, DATA),
    ];
    for _ in 0..2 {
        let found = numbers(&mut connections, &packets);
        assert_eq!(found, [1, 1, 1, 2, 2, 2]);
    }
    // A capture that begins later also begins with the first connection.
    assert_eq!(numbers(&mut connections, &packets[2..]), [1, 2, 2, 2]);
    assert_eq!((connections.count(), connections.assumed()), (2, 0));
}

#[test]
fn a_capture_that_begins_in_the_middle_ends_with_the_next_syn() {
    let mut connections = Connections::default();
    let middle = [(Direction::Down, DATA), syn(9), (Direction::Up, DATA)];
    let found = placed(&mut connections, &middle);
    assert_eq!(
        found,
        [(1, Direction::Down), (2, Direction::Up), (2, Direction::Up)]
    );
    assert_eq!(connections.assumed(), 1);
    // The other capture contains its beginning.
    let whole = [syn(7), (Direction::Down, DATA), syn(9)];
    assert_eq!(numbers(&mut connections, &whole), [1, 1, 2]);
    // Without the SYN, its answer identifies the connection.
    let mut connections = Connections::default();
    let answered = [(Direction::Down, Opens::ByServer(7)), syn(7), syn(8)];
    assert_eq!(numbers(&mut connections, &answered), [1, 1, 2]);
}

#[test]
fn the_port_of_the_server_decides_where_no_syn_does() {
    let (client, server) = ((client(false).0, 80), (server(false).0, 50_000));
    let both = [(client, server), (server, client)];
    for (source, destination) in both {
        let mut connections = Connections::with_server_port(Some(50_000));
        let direction = if destination == server {
            Direction::Up
        } else {
            Direction::Down
        };
        let data = packet(source, destination, 6, DATA);
        assert_eq!(connections.assign(&data), (1, direction));
        assert_eq!(connections.assumed(), 0);
        // Neither of these ends has the port: the lower one is assumed.
        let other = packet((source.0, 443), (destination.0, 40_000), 6, DATA);
        assert_eq!(connections.assign(&other), (2, Direction::Down));
        assert_eq!(connections.assumed(), 1);
    }
}

/// The client of the first connection between two addresses is that of packets without ports, too.
#[test]
fn packets_without_ports_have_the_client_of_those_with_ports() {
    const PING: u8 = 1;
    for is_first_up in [true, false] {
        let mut connections = Connections::default();
        connections.begin_capture();
        let (client, server) = (client(false), server(false));
        connections.assign(&packet(client, server, 6, Opens::ByClient(1)));
        let (from, to) = if is_first_up {
            (client, server)
        } else {
            (server, client)
        };
        let ping = packet((from.0, 0), (to.0, 0), PING, Opens::Nothing);
        let direction = if is_first_up {
            Direction::Up
        } else {
            Direction::Down
        };
        assert_eq!(connections.assign(&ping), (2, direction));
        assert_eq!(connections.assumed(), 0);
    }
}

//! Packets seen on several interfaces, and retransmissions, which are not copies.

use posthaste_link::Direction;

use super::findings;
use super::writer::{
    ACK, ETHERNET, FileForm, Timed, client, download, ether_type, ethernet, server, sll2, tcp,
};

const ANY: FileForm = FileForm {
    link: 276,
    ..ETHERNET
};
const MICRO: u64 = 1000;
const MILLI: u64 = 1_000_000;

/// The download as a bridge shows it: on the device, and 3 µs later on the bridge.
fn on_both(packets: &[Timed], interfaces: (u32, u32)) -> Vec<Timed> {
    let mut frames = Vec::new();
    for (at, packet) in packets {
        frames.push((*at, sll2(interfaces.0, packet)));
        frames.push((at + 3 * MICRO, sll2(interfaces.1, packet)));
    }
    frames
}

#[test]
fn a_bridge_shows_each_packet_once() {
    for is_v6 in [false, true] {
        for interfaces in [(5, 3), (2, 2)] {
            let file = ANY.pcap(&on_both(&download(is_v6), interfaces));
            let (down, up, remarks) = findings(&file, Direction::Down);
            assert_eq!(
                (down.lost, down.packets),
                (vec![8], 15),
                "{is_v6} {interfaces:?}"
            );
            assert_eq!((up.lost, up.packets), (vec![], 14));
            assert_eq!((remarks.packets, remarks.copies), (28, 28));
        }
    }
}

/// Interfaces of a pcapng file, in which frames of one interface come before those of the other.
#[test]
fn interfaces_of_a_file_may_be_read_in_bursts() {
    let ethernet = |packet: &[u8]| ethernet(&ether_type(packet), packet);
    let mut frames = Vec::new();
    for burst in download(true).chunks(4) {
        for interface in [0, 1] {
            let frame = burst.iter();
            frames.extend(frame.map(|(at, packet)| (interface, (*at, ethernet(packet)))));
        }
    }
    let (down, _, remarks) = findings(&ETHERNET.pcapng(2, &frames), Direction::Down);
    assert_eq!((down.lost, down.packets, remarks.copies), (vec![8], 15, 28));
}

/// Segment, with or without copies on another interface, sent twice after 30 ms, without anything that tells both apart.
#[test]
fn a_retransmission_is_no_copy() {
    for interfaces in [vec![5], vec![5, 3]] {
        let segment = tcp(server(true), client(true), 0, (501, 1, ACK, 1000), None);
        let mut frames = Vec::new();
        for at in [0, 30 * MILLI] {
            for (number, interface) in interfaces.iter().enumerate() {
                frames.push((at + number as u64 * MICRO, sll2(*interface, &segment)));
            }
        }
        let (_, down, remarks) = findings(&ANY.pcap(&frames), Direction::Up);
        assert_eq!((down.lost, down.packets), (vec![1], 2));
        assert_eq!(remarks.copies as usize, 2 * (interfaces.len() - 1));
    }
}

/// Acknowledgements without data may be equal at any time: three of them in 20 µs are three packets.
#[test]
fn equal_acknowledgements_and_rare_copies_count_as_packets() {
    let ack = tcp(client(true), server(true), 0, (1, 501, ACK, 0), None);
    let frames: Vec<Timed> = (0..3).map(|n| (n * 10 * MICRO, sll2(5, &ack))).collect();
    let (.., remarks) = findings(&ANY.pcap(&frames), Direction::Up);
    assert_eq!((remarks.packets, remarks.copies), (3, 0));
    // The path copies one packet of the download.
    let mut frames: Vec<Timed> = download(false);
    frames.insert(9, (frames[8].0 + MICRO, frames[8].1.clone()));
    let raw = FileForm {
        link: 101,
        ..ETHERNET
    };
    let (.., remarks) = findings(&raw.pcap(&frames), Direction::Down);
    assert_eq!((remarks.packets, remarks.copies), (29, 0));
}

/// The device alone sees the first two packets, and each later one is doubled. One is a packet until they are most.
#[test]
fn doubled_frames_are_recognised_after_single_ones() {
    let packets = download(false);
    let mut frames: Vec<Timed> = packets[..2].to_vec();
    for (at, packet) in &packets[2..] {
        frames.push((*at, packet.clone()));
        frames.push((at + 3 * MICRO, packet.clone()));
    }
    let raw = FileForm {
        link: 101,
        ..ETHERNET
    };
    let (.., remarks) = findings(&raw.pcap(&frames), Direction::Down);
    let count = packets.len() as u64;
    assert_eq!((remarks.packets, remarks.copies), (count + 1, count - 3));
}

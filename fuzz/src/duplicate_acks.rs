//! Segments past the duplicate-ACK agent, most of them whole: it sends copies and nothing else.

use std::collections::HashMap;

use etherparse::PacketBuilder;
use posthaste_emulator::agent::{DuplicateAck, DuplicateAcks, Settings, Trigger};
use posthaste_link::Direction;
use posthaste_units::{Instant, Span};

/// Bytes of input for one segment.
const SEGMENT: usize = 8;
/// Fewer than the addresses and ports that there are, so that room runs out.
const CONNECTIONS: usize = 6;
/// Close to the wrap-around, from both sides.
const NUMBERS: u32 = u32::MAX - 300;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 8;

/// Who a segment is from and to; its last packet sent upwards, and SYNs seen.
type Ends = (u8, u8);

/// Any bytes as segments, eight bytes each, and as packets where one says so.
pub fn duplicate_acks(input: &[u8]) {
    let trigger = match input.first() {
        Some(first) if first & 0x80 != 0 => Trigger::Silence,
        _ => Trigger::Fin,
    };
    let settings = Settings {
        trigger,
        connections: CONNECTIONS,
        ..Settings::default()
    };
    let mut agent = DuplicateAcks::new(settings);
    let mut now = Instant::ORIGIN;
    let mut last: HashMap<Ends, Vec<u8>> = HashMap::new();
    let mut budget = 0;
    for part in input.chunks_exact(SEGMENT) {
        now += Span::from_millis(u64::from(part[7]));
        // What was due before this segment is a copy of what was sent before it.
        while let Some(ack) = agent.pop(now) {
            check(&ack, now, &last, &mut budget);
        }
        let (direction, ends) = whose(part);
        let packet = packet(part, direction);
        agent.push(now, direction, &packet);
        if part[0] & 0x40 != 0 {
            agent.push(now, direction, part);
        }
        if part[4] & SYN != 0 {
            budget += settings.per_connection;
        }
        if direction == Direction::Up {
            last.insert(ends, packet);
        }
        assert!(agent.followed() <= CONNECTIONS && agent.running() <= agent.followed());
    }
    while let Some(ack) = agent.pop(Instant::FAR_FUTURE) {
        check(&ack, Instant::FAR_FUTURE, &last, &mut budget);
    }
    let counters = agent.counters();
    let ended: u64 = counters.ends().iter().map(|end| end.1).sum();
    assert_eq!((counters.started, agent.running()), (ended, 0));
    assert_eq!(agent.wake(), None);
}

/// Which way a segment goes and which connection it belongs to.
fn whose(part: &[u8]) -> (Direction, Ends) {
    let direction = match part[0] & 1 {
        0 => Direction::Up,
        _ => Direction::Down,
    };
    (direction, (part[0] >> 1 & 1, part[1] % 8))
}

/// The receiver's last packet, byte for byte, and never one too many.
fn check(ack: &DuplicateAck, now: Instant, last: &HashMap<Ends, Vec<u8>>, budget: &mut u32) {
    assert!(ack.due <= now);
    let ends = (
        u8::from(ack.flow.client.is_ipv6()),
        ack.flow.client.port() as u8,
    );
    assert_eq!(Some(&ack.packet), last.get(&ends), "no copy of the last");
    let header = if ends.0 == 0 { 20 } else { 40 };
    assert_eq!(ack.packet.len(), header + 20, "it carries data");
    assert_eq!(ack.packet[header + 13], 0x10, "a flag beside ACK");
    assert!(*budget > 0, "more than a connection may have");
    *budget -= 1;
}

/// A whole packet, or one that the link has damaged: only those that come down have passed it.
fn packet(part: &[u8], direction: Direction) -> Vec<u8> {
    let [
        kind,
        port,
        sequence,
        acknowledgment,
        flags,
        window,
        payload,
        _,
    ] = part
    else {
        return part.to_vec();
    };
    let (port, server) = (u16::from(port % 8), 80);
    let (source, destination) = match direction {
        Direction::Up => ((1, port), (2, server)),
        Direction::Down => ((2, server), (1, port)),
    };
    let start = match kind >> 1 & 1 {
        0 => PacketBuilder::ipv4([10, 0, 0, source.0], [10, 0, 0, destination.0], 64),
        _ => PacketBuilder::ipv6([source.0; 16], [destination.0; 16], 64),
    };
    let number = |part: u8| NUMBERS.wrapping_add(u32::from(part) * 4);
    let window = u16::from(*window) * 16;
    let mut tcp = start.tcp(source.1, destination.1, number(*sequence), window);
    if flags & FIN != 0 {
        tcp = tcp.fin();
    }
    if flags & SYN != 0 {
        tcp = tcp.syn();
    }
    if flags & RST != 0 {
        tcp = tcp.rst();
    }
    if flags & ACK != 0 {
        tcp = tcp.ack(number(*acknowledgment));
    }
    let mut packet = Vec::new();
    tcp.write(&mut packet, &[0; 255][..usize::from(*payload)])
        .expect("a packet that fits");
    if kind & 0x20 != 0 && direction == Direction::Down {
        let bit = usize::from(*sequence) % (packet.len() * 8);
        packet[bit / 8] ^= 0x80 >> (bit % 8);
    }
    packet
}

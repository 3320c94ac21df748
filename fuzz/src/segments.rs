//! Eight bytes as a whole segment: few ends, numbers close together, so that segments have to do with one another.

use etherparse::PacketBuilder;
use posthaste_link::Direction;

/// Bytes of input for one segment: kind, port, sequence, acknowledgment, flags, window, payload, and
/// how many milliseconds it is later than the last.
pub(crate) const SEGMENT: usize = 8;
/// Close to the wrap-around, from both sides.
const NUMBERS: u32 = u32::MAX - 300;

const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 8;

/// Who a segment is from and to; its last packet sent upwards, and SYNs seen.
pub(crate) type Ends = (u8, u8);

/// Which way a segment goes and which connection it belongs to.
pub(crate) fn whose(part: &[u8]) -> (Direction, Ends) {
    let direction = match part[0] & 1 {
        0 => Direction::Up,
        _ => Direction::Down,
    };
    (direction, (part[0] >> 1 & 1, part[1] % 8))
}

/// A whole packet.
pub(crate) fn packet(part: &[u8], direction: Direction) -> Vec<u8> {
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
    packet
}

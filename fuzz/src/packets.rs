//! IP packets off a wire, as they are and with their checksums made right: what is read is in the
//! packet, and written again it says the same.

use etherparse::checksum::Sum16BitWords;
use posthaste_tcp::wire::{ReceivedPacket, read, write};

use crate::within;

/// Bytes of an IPv4 header without options, and where the checksums stand.
const IPV4: usize = 20;
const IPV4_SUM: usize = 10;
const TCP_SUM: usize = 16;

/// Any bytes as a packet.
pub fn packets(input: &[u8]) {
    judge(input);
    judge(&mended(input));
}

fn judge(packet: &[u8]) {
    let read_at_once = within("read", packet.len(), 0, 0, || read(packet));
    let Ok(received) = read_at_once else { return };
    let ReceivedPacket {
        route,
        segment,
        payload,
    } = received;
    assert_eq!(payload.len(), segment.len as usize);
    let inside = packet.as_ptr_range();
    let whole = payload.as_ptr_range();
    assert!(inside.start <= whole.start && whole.end <= inside.end);
    let (first, second) = payload.split_at(payload.len() / 2);
    let mut again = Vec::new();
    write(&mut again, &route, &segment, [first, second]).expect("what was read fits a packet");
    assert_eq!(
        read(&again),
        Ok(received),
        "written again it says something else"
    );
}

/// The same with right checksums, where there is room for them.
fn mended(input: &[u8]) -> Vec<u8> {
    let mut packet = input.to_vec();
    let (start, addresses) = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= IPV4 => {
            let start = usize::from(packet[0] & 0x0f) * 4;
            if start < IPV4 || start > packet.len() {
                return packet;
            }
            packet[IPV4_SUM..IPV4_SUM + 2].fill(0);
            let sum = Sum16BitWords::new().add_slice(&packet[..start]);
            put(&mut packet, IPV4_SUM, sum);
            (start, 12..20)
        }
        Some(6) if packet.len() >= 40 => (40, 8..40),
        _ => return packet,
    };
    if packet.len() < start + TCP_SUM + 2 {
        return packet;
    }
    packet[start + TCP_SUM..start + TCP_SUM + 2].fill(0);
    let length = (packet.len() - start) as u32;
    let sum = Sum16BitWords::new()
        .add_slice(&packet[addresses])
        .add_2bytes([0, 6])
        .add_4bytes(length.to_be_bytes())
        .add_slice(&packet[start..]);
    put(&mut packet, start + TCP_SUM, sum);
    packet
}

fn put(packet: &mut [u8], at: usize, sum: Sum16BitWords) {
    packet[at..at + 2].copy_from_slice(&sum.ones_complement().to_be().to_be_bytes());
}

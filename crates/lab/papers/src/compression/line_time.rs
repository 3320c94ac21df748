//! Computed time of an exchange on a line: the transmission time of each packet and the delays, without the time of the
//! programs at the ends.
//!
//! The sender never waits for the window: on these lines its first ten packets take longer than the return of their
//! acknowledgements.

use posthaste_link::profile::{Profile, ProfileDirection};
use posthaste_units::Span;

/// Bytes of an IP and a TCP header with timestamps; a SYN has eight more.
const HEADERS: u64 = 52;
const SYN: u64 = 60;
/// Bytes of data in a full packet.
const SEGMENT: u64 = 1448;

/// Time from the SYN to the last byte of the reply, for these bytes in each direction. The server acknowledges the
/// request before it answers.
pub(super) fn exchange(profile: &Profile, sent: u64, received: u64) -> Span {
    let Profile { up, down, .. } = profile;
    let handshake = passes(up, &[SYN]) + passes(down, &[SYN]);
    let request = [vec![HEADERS], segments(sent)].concat();
    let reply = [vec![HEADERS], segments(received)].concat();
    handshake + passes(up, &request) + passes(down, &reply)
}

/// Time until the last of these packets has arrived, if all are sent at once.
fn passes(way: &ProfileDirection, packets: &[u64]) -> Span {
    let bytes: u64 = packets
        .iter()
        .map(|bytes| bytes + u64::from(way.overhead))
        .sum();
    let rate = way.bandwidth().map_or(u64::MAX, |rate| rate.as_bits());
    way.delay + Span::from_secs_f64(bytes as f64 * 8.0 / rate as f64)
}

/// Sizes of the packets that carry `bytes` bytes.
fn segments(bytes: u64) -> Vec<u64> {
    let full = vec![HEADERS + SEGMENT; (bytes / SEGMENT) as usize];
    let rest = Some(bytes % SEGMENT).filter(|rest| *rest > 0);
    full.into_iter()
        .chain(rest.map(|rest| HEADERS + rest))
        .collect()
}

#[cfg(test)]
mod tests {
    use posthaste_link::profile::named;

    use super::*;

    #[test]
    fn one_packet_each_way_takes_four_delays_and_its_bits() {
        let gprs = named("gprs").unwrap();
        // Up: 60, then 52 and 52 + 448 bytes; down: 60, then 52 and 52 + 96.
        let line = 8.0 * ((60.0 + 52.0 + 500.0) / 13_400.0 + (60.0 + 52.0 + 148.0) / 40_200.0);
        let computed = exchange(gprs, 448, 96).as_secs_f64();
        assert!((computed - (2.6 + line)).abs() < 1e-6, "{computed}");
    }

    #[test]
    fn bytes_become_full_packets_and_a_rest() {
        assert_eq!(segments(2 * SEGMENT), [1500, 1500]);
        assert_eq!(segments(SEGMENT + 1), [1500, 53]);
        assert!(segments(0).is_empty());
    }
}

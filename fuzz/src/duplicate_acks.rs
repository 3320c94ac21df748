//! Segments past the duplicate-ACK agent, most of them whole: it sends copies and nothing else.

use std::collections::HashMap;

use posthaste_emulator::agent::{AdaptiveAcks, DuplicateAck, DuplicateAcks, Settings, Trigger};
use posthaste_link::Direction;
use posthaste_units::{Instant, Span};

use crate::segments::{Ends, SEGMENT, SYN, packet, whose};

/// Fewer than the addresses and ports that there are, so that room runs out.
const CONNECTIONS: usize = 6;
/// Any bytes as segments, eight bytes each, and as packets where one says so.
pub fn duplicate_acks(input: &[u8]) {
    let trigger = match input.first() {
        Some(first) if first & 0x80 != 0 => Trigger::Silence,
        _ => Trigger::Fin,
    };
    let settings = Settings {
        rule: AdaptiveAcks {
            trigger,
            ..AdaptiveAcks::default()
        },
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
        let mut packet = packet(part, direction);
        if part[0] & 0x20 != 0 && direction == Direction::Down {
            damage(&mut packet, part[2]);
        }
        agent.push(now, direction, &packet);
        if part[0] & 0x40 != 0 {
            agent.push(now, direction, part);
        }
        if part[4] & SYN != 0 {
            budget += settings.rule.per_connection;
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

/// As the link may have: only those that come down have passed it.
fn damage(packet: &mut [u8], position: u8) {
    let bit = usize::from(position) % (packet.len() * 8);
    packet[bit / 8] ^= 0x80 >> (bit % 8);
}

//! What a trace says of packets: each once, in the order in which things happened, whatever they were.

use std::sync::Arc;

use posthaste_emulator::response::Responses;
use posthaste_emulator::trace::{EventOrder, PacketEvent};
use posthaste_emulator::{Flow, PacketRecord};
use posthaste_link::{Fate, Network, Plan, Sharing};
use posthaste_units::{Instant, Ratio, Seed, Span};

use crate::segments::{SEGMENT, packet, whose};

/// Any bytes as segments, eight bytes each, over a link that does everything to them.
pub fn trace(input: &[u8]) {
    let share = |share| Ratio::new(share).unwrap_or_default();
    let plan = Arc::new(Plan {
        delay: Span::from_millis(20),
        jitter: "uniform:15ms".parse().ok(),
        keeps_order: false,
        loss: "10%".parse().ok(),
        bit_error_rate: share(0.0001),
        duplication: share(0.1),
        ..Plan::default()
    });
    let mut network = Network::new(&plan, &plan, Sharing::PerConnection, Seed(1));
    let mut now = Instant::ORIGIN;
    for part in input.chunks_exact(SEGMENT) {
        now += Span::from_millis(u64::from(part[7]));
        let (direction, (version, port)) = whose(part);
        let ends = |client: [u8; 16], server: [u8; 16]| Flow {
            protocol: 6,
            client: (client, u16::from(port)).into(),
            server: (server, 80).into(),
        };
        let flow = ends([version; 16], [version; 16]);
        let whole = packet(part, direction);
        // Headers that are cut off or nonsense, too.
        let packet = match part[0] >> 6 {
            0 | 1 => whole,
            2 => whole[..whole.len() * usize::from(part[6]) / 255].to_vec(),
            _ => part.repeat(6),
        };
        network.push(now, direction, flow, packet);
    }
    check_records(seen(&mut network));
}

/// All that comes out of a network, as the emulator would have seen it.
pub(crate) fn seen(network: &mut Network<Flow, Vec<u8>>) -> Vec<PacketRecord> {
    let next = || {
        let (direction, connection, flow, passage) = network.pop(Instant::FAR_FUTURE)?;

        Some(PacketRecord::new(
            direction,
            connection,
            flow,
            &passage,
            passage.left,
        ))
    };
    std::iter::from_fn(next).collect()
}

/// Each packet_record happens once, and reaches the other end once where it was delivered.
pub(crate) fn check_records(packet_records: Vec<PacketRecord>) {
    let delivered = |packet_record: &PacketRecord| matches!(packet_record.fate, Fate::Delivered(_));
    let arrivals = packet_records
        .iter()
        .filter(|packet_record| delivered(packet_record));
    let expected = (packet_records.len(), arrivals.count());
    let mut event_order = EventOrder::new();
    let mut responses = Responses::new();
    let (mut came, mut reached, mut last) = (0, 0, Instant::ORIGIN);
    packet_records
        .into_iter()
        .for_each(|packet_record| event_order.push(packet_record));
    event_order.end();
    while let Some(event) = event_order.pop() {
        match &event {
            PacketEvent::Arrived(_) => came += 1,
            PacketEvent::Delivered(_) => reached += 1,
        }
        assert!(event.time() >= last, "it happened before the last");
        last = event.time();
        responses.follow(&event);
    }
    assert_eq!((came, reached), expected);
    for response in responses.finish().responses {
        assert!(response.began <= last);
    }
}

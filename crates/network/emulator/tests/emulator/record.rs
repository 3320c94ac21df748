//! The inputs of a real-time run replay, in virtual time, to the same decisions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use posthaste_emulator::PacketRecord;
use posthaste_link::loss::Independent;
use posthaste_link::record::{BlankPacket, Input};
use posthaste_link::{Direction, Fate, Jitter, JitterShape, Loss, Network, Plan, Sharing, Spread};
use posthaste_units::{BitRate, Instant, Ratio, Seed, Span};

use crate::inside::{ReplyService, delay, emulation, seen, servers, transact};

pub(crate) const SEED: Seed = Seed(42);
const REPLY: usize = 40_000;

/// Identity of a packet: direction, connection, position, copy.
type Which = (Direction, u64, u64, u32);

pub(crate) fn replays() {
    let percent = |share| Ratio::new(share).expect("a share");
    let plan = Plan {
        bandwidth: BitRate::per_second(20_000_000),
        loss: Some(Loss::Independent(Independent {
            loss: percent(0.02),
        })),
        duplication: percent(0.02),
        jitter: Some(Jitter {
            shape: JitterShape::Uniform,
            spread: Spread::Fixed(Span::from_millis(2)),
        }),
        ..delay(5)
    };
    let emulation = emulation(plan.clone()).seed(SEED).inputs(1 << 16);
    let running = emulation.start().expect("an emulation");
    for address in servers() {
        let service = ReplyService {
            request: 1000,
            reply: REPLY,
            processing: Duration::ZERO,
            connections: 2,
        };
        let (at, served) = service.start(&running, address);
        let clients = [(); 2].map(|()| running.client.spawn(move || transact(at, 1000, REPLY)));
        for client in clients {
            client.join().expect("a reply");
        }
        served.join().expect("served");
    }
    let seen = seen(&running);
    let inputs: Vec<Input> = running
        .inputs
        .as_ref()
        .expect("asked for")
        .drain()
        .collect();
    let outcome = running.finish().expect("an outcome");
    assert_eq!((outcome.unseen, outcome.unrecorded), (0, 0));

    assert_replays(plan, &seen, &inputs);
    let dropped = |fate: &Fate| matches!(fate, Fate::Dropped(_));
    assert!(
        seen.iter()
            .any(|packet_record| dropped(&packet_record.fate))
    );
}

/// Panics unless the inputs of a run replay to the departures and fates that were seen.
pub(crate) fn assert_replays(plan: Plan, seen: &[PacketRecord], inputs: &[Input]) {
    let plan = Arc::new(plan);
    let mut network: Network<u64, BlankPacket> =
        Network::new(&plan, &plan, Sharing::PerConnection, SEED);
    let mut replayed: HashMap<Which, (Instant, Fate)> = HashMap::new();
    network.replay(inputs, |(direction, connection, _, departure)| {
        let which = (direction, connection, departure.position, departure.copy);
        replayed.insert(which, (departure.left, departure.fate));
    });
    for packet_record in seen {
        let which = (
            packet_record.direction,
            packet_record.connection,
            packet_record.position,
            packet_record.copy,
        );
        let found = replayed.get(&which);
        assert_eq!(
            found,
            Some(&(packet_record.left, packet_record.fate)),
            "{which:?}"
        );
    }
}

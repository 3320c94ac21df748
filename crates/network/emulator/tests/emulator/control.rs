//! Links that change while real packets pass.

use std::net::UdpSocket;
use std::time::Duration;

use posthaste_emulator::{CLIENT, RunningEmulation};
use posthaste_link::{Direction, DropReason, Fate};
use posthaste_units::Span;

use crate::inside::{ReplyService, delay, emulation, seen, servers, transact};
use crate::record::{SEED, assert_replays};

/// An outage drops every packet, its end lets TCP pass with the new values, and all of it replays.
pub(crate) fn changes() {
    let plan = delay(5);
    let emulation = emulation(plan.clone()).seed(SEED).inputs(1 << 16);
    let running = emulation.control(true).start().expect("an emulation");
    let control = running.control.clone().expect("requested");
    let change = |text: &str| control.change(text.parse().expect("a change"));
    for address in servers() {
        let service = ReplyService {
            request: 1000,
            reply: 20_000,
            processing: Duration::ZERO,
            connections: 2,
        };
        let (at, served) = service.start(&running, address);
        let near = running.client.run(move || transact(at, 1000, 20_000));
        assert!(near >= Duration::from_millis(20), "{near:?}");
        change("down:outage=1h").expect("changed");
        let refused = change("delay=1ms queue=50:codel").expect_err("another discipline");
        assert!(
            refused.to_string().contains("keeps its discipline"),
            "{refused}"
        );
        assert_lost(&running);
        let all = "outage=0s delay=40ms bandwidth=20Mbit queue=100 loss=1% duplicate=2% jitter=uniform:2ms";
        change(all).expect("changed");
        let far = running.client.run(move || transact(at, 1000, 20_000));
        assert!(far >= Duration::from_millis(130), "{far:?}");
        change("delay=5ms bandwidth=unlimited loss=none duplicate=0% jitter=none")
            .expect("changed");
        served.join().expect("served");
    }
    let seen = seen(&running);
    let inputs: Vec<_> = running
        .inputs
        .as_ref()
        .expect("asked for")
        .drain()
        .collect();
    let log = control.log().all();
    let outcome = running.finish().expect("an outcome");
    assert_eq!((outcome.unseen, outcome.unrecorded), (0, 0));
    assert_eq!(outcome.changes, log);
    assert_eq!(log.len(), 6);
    assert!(log.is_sorted_by_key(|applied| applied.at));
    assert_replays(plan, &seen, &inputs);
    let lost = outcome.down.link.dropped(DropReason::Outage).packets;
    let seen_lost = seen
        .iter()
        .filter(|record| record.fate == Fate::Dropped(DropReason::Outage));
    assert!(
        seen_lost
            .clone()
            .all(|record| record.direction == Direction::Down)
    );
    let seen_lost = seen_lost.count() as u64;
    assert!(lost == seen_lost && lost >= 10, "{lost} {seen_lost}");
    let after = |change: usize| {
        let since =
            move |record: &&posthaste_emulator::PacketRecord| record.arrived >= log[change].at;
        seen.iter()
            .filter(since)
            .find(|record| matches!(record.fate, Fate::Delivered(_)))
    };
    let first = after(1).expect("a packet after the outage");
    let stay = first.left.since(first.arrived);
    assert!(
        (Span::from_millis(38)..=Span::from_millis(43)).contains(&stay),
        "{stay}"
    );
}

/// Panics unless five datagrams down are lost while one up arrives.
fn assert_lost(running: &RunningEmulation) {
    let bind = |address| move || UdpSocket::bind((address, 0)).expect("a free port");
    let client = running.client.run(bind(CLIENT.v4));
    let server = running.server.run(bind(posthaste_emulator::SERVER.v4));
    let (to_client, to_server) = (client.local_addr(), server.local_addr());
    let patience = Some(Duration::from_secs(30));
    server.set_read_timeout(patience).expect("a limit");
    client
        .send_to(b"up", to_server.expect("bound"))
        .expect("sent");
    assert_eq!(server.recv(&mut [0; 9]).expect("up is not changed"), 2);
    let to_client = to_client.expect("bound");
    for _ in 0..5 {
        server.send_to(b"down", to_client).expect("sent");
    }
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a limit");
    client.recv(&mut [0; 9]).expect_err("an outage");
}

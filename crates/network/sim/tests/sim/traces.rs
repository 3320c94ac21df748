//! Descriptions of packets in a trace.

use posthaste_link::Direction;
use posthaste_sim::PacketTrace;
use posthaste_tcp::trace::{SegmentKind, Sending};

use crate::support::{author, dropping, plan, scenario, simulator};

fn trace_lines(drops: Option<&str>) -> Vec<String> {
    let mut down = plan(Some(300), 10);
    if let Some(places) = drops {
        down = dropping(down, Direction::Down, places);
    }
    let mut simulator = simulator(scenario("rfc", [plan(Some(300), 10), down], author()));
    let mut trace = PacketTrace::new();
    simulator.play_before(1, &mut trace);
    let packets = trace.packets().iter();
    packets
        .map(|packet| format!("{} {}", packet.direction, packet.label()))
        .collect()
}

#[test]
fn a_transaction_reads_as_it_went() {
    let lines = trace_lines(None);
    let opening = ["up 1 syn", "down 1 syn-ack", "up 2 ack 1", "up 3 1:1439"];
    assert_eq!(lines[..4], opening);
    assert!(lines.contains(&"down 3 1:1449".to_owned()), "{lines:?}");
    let last = lines
        .iter()
        .find(|line| line.contains("FIN"))
        .expect("a FIN on data");
    assert!(
        last.starts_with("down ") && last.ends_with("11585:12975 FIN"),
        "{last}"
    );
}

#[test]
fn lost_packets_are_sent_again_with_their_reason() {
    let mut down = dropping(plan(Some(300), 10), Direction::Down, "1, 11");
    down.overhead = 14;
    let mut simulator = simulator(scenario("rfc", [plan(Some(300), 10), down], author()));
    let mut trace = PacketTrace::new();
    let transaction = simulator.play_before(1, &mut trace);
    let dropped = transaction.links[1].dropped_in_all().packets;
    let lost = trace
        .packets()
        .iter()
        .filter(|packet| packet.loss().is_some());
    assert_eq!((lost.count() as u64, dropped), (2, 2));
    let again = |kind: SegmentKind| {
        let found = trace
            .packets()
            .iter()
            .find(|packet| packet.kind == kind && packet.sending == Sending::Timeout);
        found.unwrap_or_else(|| panic!("no {kind:?} after a timeout"))
    };
    let syn = again(SegmentKind::Syn);
    assert!(syn.waited().is_some_and(|(_, name)| name == "timeout"));
}

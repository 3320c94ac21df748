//! Frames off a device: what is admitted is whole, and goes through the links as it should.

use std::sync::Arc;

use posthaste_emulator::MTU;
use posthaste_emulator::flow::{Admitted, admit};
use posthaste_link::{Direction, Network, Plan, Sharing};
use posthaste_units::{Instant, Ratio, Seed, Span};

use crate::cuts::Cut;
use crate::trace::{check_records, seen};
use crate::within;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Any pieces as frames, from either side in turn; the flag says which begins.
pub fn frames(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let plan = Arc::new(Plan {
        delay: Span::from_micros(10),
        bit_error_rate: Ratio::new(0.01).unwrap_or_default(),
        duplication: Ratio::new(0.1).unwrap_or_default(),
        ..Plan::default()
    });
    let mut network = Network::new(&plan, &plan, Sharing::PerConnection, Seed(1));
    let mut direction = if cut.flag {
        Direction::Down
    } else {
        Direction::Up
    };
    let mut pushed = 0;
    for (number, frame) in cut.pieces().enumerate() {
        let now = Instant::from_nanos(number as u64);
        let judged = within("admit", frame.len(), 0, 0, || admit(frame, direction));
        if let Ok(admitted) = judged {
            whole(frame, direction, admitted);
            let packet = frame[ETHERNET..ETHERNET + admitted.length].to_vec();
            network.push(now, direction, admitted.flow, packet);
            pushed += 1;
        }
        direction = direction.reverse();
    }
    let packet_records = seen(&mut network);
    let out = packet_records
        .iter()
        .filter(|packet_record| packet_record.copy == 0);
    assert_eq!(out.count(), pushed, "packets that went in and came out");
    assert!(network.wake().is_none(), "nothing is left to wait for");
    check_records(packet_records);
}

/// An admitted packet is all there, depends on nothing behind it, and has the same ends whichever
/// way it goes.
fn whole(frame: &[u8], direction: Direction, admitted: Admitted) {
    let end = ETHERNET + admitted.length;
    assert!(admitted.length <= MTU as usize && end <= frame.len());
    assert_eq!(admit(&frame[..end], direction), Ok(admitted));
    assert!(admit(&frame[..end - 1], direction).is_err());
    let back = admit(frame, direction.reverse()).expect("the way changes nothing");
    assert_eq!(back.flow.client, admitted.flow.server);
    assert_eq!(back.flow.server, admitted.flow.client);
    assert_eq!(back.flow.protocol, admitted.flow.protocol);
}

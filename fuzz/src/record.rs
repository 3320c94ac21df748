//! Records: what is read is written the same, and replays twice to the same decisions.

use std::sync::Arc;

use posthaste_link::record::{HEADER, Input, RecordError, parse};
use posthaste_link::{Direction, Network, Plan, Sharing};
use posthaste_units::{Instant, Ratio, Seed, Span};

use crate::within;

/// Bytes that may be allocated for each byte read: a change of 17 is an input of forty,
/// in a list that grows, with a list of its settings.
const PER_BYTE: usize = 40;
/// An error's words, and the least that a list takes.
const FIXED: usize = 4 << 10;

/// Any bytes as a record.
pub fn record(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let read = within("record::parse", text.len(), PER_BYTE, FIXED, || parse(text));
    match read {
        Ok(inputs) => holds(&inputs),
        Err(RecordError::NoHeader { line } | RecordError::NotAnInput { line, .. }) => {
            assert!((1..=text.lines().count().max(1)).contains(&line));
        }
    }
}

fn holds(inputs: &[Input]) {
    let lines: String = inputs.iter().map(|input| format!("{input}\n")).collect();
    let again = parse(&format!("{HEADER}\n{lines}"));
    assert_eq!(again.as_deref(), Ok(inputs), "{lines}");
    let plan = Arc::new(Plan {
        delay: Span::from_millis(3),
        loss: "5%".parse().ok(),
        duplication: Ratio::new(0.1).unwrap_or_default(),
        jitter: "uniform:2ms".parse().ok(),
        bandwidth: "1Mbit".parse().ok(),
        ..Plan::default()
    });
    let replayed = |sharing| {
        let mut network = Network::new(&plan, &plan, sharing, Seed(1));
        let mut last = Instant::ORIGIN;
        let mut out = Vec::new();
        network.replay(inputs, |(direction, connection, _, passage)| {
            out.push((direction, connection, passage));
        });
        for (_, _, passage) in &out {
            assert!(passage.left >= last, "in the order of leaving");
            last = passage.left;
        }
        let packets = inputs
            .iter()
            .filter(|input| matches!(input, Input::Packet(_)));
        let packets = packets.count();
        let pushed = Direction::BOTH.map(|direction| network.counters(direction).pushed.packets);
        assert_eq!(pushed.iter().sum::<u64>(), packets as u64);
        let whole = out.iter().filter(|(_, _, passage)| passage.copy == 0);
        assert_eq!(whole.count(), packets, "each comes out once");
        format!("{out:?}")
    };
    for sharing in [Sharing::PerConnection, Sharing::Whole] {
        assert_eq!(replayed(sharing), replayed(sharing));
    }
}

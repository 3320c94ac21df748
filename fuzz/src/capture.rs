//! Captures: whatever a file holds, what is made of it is a pattern, or refused by name.

use posthaste_emulator::capture::{CaptureError, Connections, read};
use posthaste_link::Direction;
use posthaste_link::pattern::infer::{CapturePair, Findings, ReceiverCapture, SenderCapture};
use posthaste_link::pattern::{Draft, Pattern};
use posthaste_units::Span;

use crate::within;

/// Bytes that may be allocated for each byte read: a connection is remembered for each packet.
const PER_BYTE: usize = 100;
/// The buffer of a reader, which is zeroed once and may be moved once.
const FIXED: usize = 4 << 20;
/// Bytes that a compressed one can become.
const EXPANSION: usize = 1032;

/// Any bytes as a capture from either end, and from both.
pub fn capture(bytes: &[u8]) {
    let mut connections = Connections::default();
    let mut packets = 0;
    let length = if bytes.starts_with(&[0x1f, 0x8b]) {
        bytes.len() * EXPANSION
    } else {
        bytes.len()
    };
    let done = within("capture::read", length, PER_BYTE, FIXED, || {
        read(bytes, &mut connections, |packet| {
            packets += 1;
            assert!(packet.seen.connection > 0);
        })
    });
    if let Err(error) = &done {
        assert!(!error.to_string().is_empty() && *error != CaptureError::Reading);
    }
    assert!(connections.count() <= packets);
    for towards in Direction::BOTH {
        let (mut receiver, mut sender) = (
            ReceiverCapture::new(towards),
            SenderCapture::new(towards.reverse()),
        );
        let mut pair = CapturePair::default();
        let mut number = 0;
        let again = read(bytes, &mut Connections::default(), |packet| {
            receiver.push(&packet.seen);
            sender.push(&packet.seen);
            // Each packet leaves, arrives, or both: some match.
            number += 1;
            if number % 3 != 0 {
                pair.sent(packet.seen.at, packet.mark);
            }
            if number % 5 != 0 {
                pair.arrived(packet.seen.at, packet.mark);
            }
        });
        assert_eq!(again, done, "the same file read twice");
        if let Ok(remarks) = again {
            assert_eq!(remarks.packets, number);
        }
        for findings in [receiver.finish(), sender.finish(), pair.finish(Span::ZERO)] {
            found(towards, &findings);
        }
    }
}

/// What was found stands at positions that there are, and makes a pattern that reads back.
fn found(direction: Direction, findings: &Findings) {
    let Findings {
        packets,
        lost,
        overtaken,
        copied,
        delayed,
        ..
    } = findings;
    let positions = (lost.iter())
        .chain(overtaken.iter().map(|(position, _)| position))
        .chain(copied.iter().map(|(position, _)| position))
        .chain(delayed.iter().map(|(position, _)| position));
    for position in positions {
        assert!((1..=*packets).contains(position), "{position} of {packets}");
    }
    assert!(lost.is_sorted());
    let mut draft = Draft::default();
    if let Err(refusal) = findings.add_to(direction, &mut draft) {
        return assert!(!refusal.to_string().is_empty());
    }
    let pattern = draft.finish();
    let text = pattern.to_string();
    assert_eq!(Pattern::parse(&text).as_ref(), Ok(&pattern), "{text}");
}

//! Events in the body of a reply: where the body is cut into reads changes nothing.

use posthaste_load::{EventFormat, EventPart, EventPlan, EventReader};

use crate::cuts::Cut;
use crate::within;

/// Bit of the first byte that says that the body is messages of gRPC.
const MESSAGES: u8 = 0x40;

/// Any bytes as a body, cut anywhere; the flag says that it is JSON lines.
pub fn event_stream(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let plan = EventPlan {
        format: match (cut.flag, input[0] & MESSAGES) {
            (true, _) => EventFormat::JsonLines,
            (false, 0) => EventFormat::Sse,
            (false, _) => EventFormat::GrpcMessages,
        },
        end_mark: Some("[DONE]".to_owned()),
    };
    let mut reader = EventReader::new(&plan);
    let whole = read(&mut reader, &mut std::iter::once(cut.stream));
    // A body before it leaves no trace.
    let pieces = read(&mut reader, &mut cut.pieces());
    assert_eq!(whole, pieces);
    if plan.format == EventFormat::GrpcMessages {
        // Each message has a prefix of five bytes.
        assert!(
            whole.len() <= cut.stream.len() / 5,
            "{} messages",
            whole.len()
        );
        return;
    }
    let lines = cut
        .stream
        .iter()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
        .count();
    assert!(
        whole.len() <= lines + 1,
        "{} parts of {lines} lines",
        whole.len()
    );
}

fn read(reader: &mut EventReader, pieces: &mut dyn Iterator<Item = &[u8]>) -> Vec<EventPart> {
    let pieces: Vec<&[u8]> = pieces.collect();
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut parts = Vec::with_capacity(length + 1);
    within("EventReader::feed", length, 0, 1_024, || {
        reader.begin();
        for piece in &pieces {
            reader.feed(piece, |part| parts.push(part));
        }
        reader.end(|part| parts.push(part));
    });
    parts
}

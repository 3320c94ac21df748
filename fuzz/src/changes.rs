//! A broker's stream of changes: where it is cut into pieces changes nothing, and what it tells can be told again.

use posthaste_broker_client::{Event, EventReader, Put};
use posthaste_serve::sse::write_event;
use serde_json::json;

use crate::cuts::Cut;
use crate::within;

/// Bytes that may be allocated for each byte read: an operation of 30 bytes takes some 300.
const PER_BYTE: usize = 100;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 16 << 10;

/// Any bytes as a stream, cut anywhere.
pub fn changes(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let bounded_read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        within("EventReader", cut.stream.len(), PER_BYTE, FIXED, || {
            read(pieces)
        })
    };
    let whole = bounded_read(&mut std::iter::once(cut.stream));
    assert_eq!(whole, bounded_read(&mut cut.pieces()));
    assert_eq!(whole, bounded_read(&mut cut.stream.chunks(1)));
    for event in &whole.0 {
        let again = write(event);
        let read = read(&mut std::iter::once(again.as_bytes()));
        assert_eq!(read, (vec![event.clone()], None), "{again}");
    }
    if let Some(message) = whole.1 {
        assert!(!message.is_empty());
    }
}

/// The events, and the error that ended them.
fn read(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Vec<Event>, Option<String>) {
    let (mut reader, mut events) = (EventReader::default(), Vec::new());
    for mut piece in pieces {
        loop {
            match reader.next(&mut piece) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => return (events, Some(error.to_string())),
            }
        }
        assert!(piece.is_empty(), "more is wanted while there is some");
    }
    (events, None)
}

/// As a broker writes it.
fn write(event: &Event) -> String {
    let (name, number, data) = match event {
        Event::Begin => ("begin", None, json!(null)),
        Event::Ready(number) => ("ready", Some(*number), json!(null)),
        Event::Alive => ("alive", None, json!(null)),
        Event::Late(age) => {
            let milliseconds = age.as_millis() as u64;
            ("late", None, json!({ "milliseconds": milliseconds }))
        }
        Event::Changed { number, put } => {
            let name = match put.offer {
                Some(_) => "put",
                None => "withdrawn",
            };
            let Put {
                kind,
                provider,
                name: offer_name,
                at,
                offer,
            } = &**put;
            let data = json!({
                "type": kind, "provider": provider, "name": offer_name, "at": at, "offer": offer,
            });
            (name, *number, data)
        }
    };
    let (mut text, data) = (Vec::new(), data.to_string());
    write_event(&mut text, name, number, |to| {
        to.extend_from_slice(data.as_bytes());
    });
    String::from_utf8(text).expect("an event is text")
}

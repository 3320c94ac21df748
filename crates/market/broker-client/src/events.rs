//! Stream of changes.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use posthaste_qos::{Offer, bounds};
use posthaste_serve::sse::{SseError, SseEvent, SseReader};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::client::BrokerClient;
use crate::error::Error;

/// Maximum silence of a stream. A working broker sends an event every second.
const SILENCE: Duration = Duration::from_secs(10);

/// Maximum bytes of an event: a document's limit, several times over because of JSON's overhead.
const LONGEST: usize = 8 * bounds::BYTES;

/// Incremental parser of a stream of changes.
#[derive(Debug)]
pub struct EventReader(SseReader);

/// An event of a broker's stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Discard all offers: a complete transfer follows.
    Begin,
    /// An offer was put or withdrawn, or is part of a complete transfer.
    Changed {
        /// Number of the change; `None` in a complete transfer.
        number: Option<u64>,
        /// The change.
        put: Box<Put>,
    },
    /// All changes up to this number have been sent.
    Ready(u64),
    /// No change; the broker is alive.
    Alive,
    /// The broker is alive, but has been out of step with its source for this long.
    Late(Duration),
}

/// Content of an offer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Put {
    /// Interface type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Provider of the offer.
    pub provider: String,
    /// Name of the offer.
    pub name: String,
    /// Time of storage at the broker; `None` in a complete transfer.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// The offer; `None` after a withdrawal.
    #[serde(default)]
    pub offer: Option<Offer>,
}

#[derive(Deserialize)]
struct Late {
    milliseconds: u64,
}

impl BrokerClient {
    /// Passes the broker's events to `take`: all offers first, or the changes after number `last`, then changes as they
    /// happen. Returns when `take` breaks. Fails when the stream ends; then call it again with the number of the last
    /// change.
    pub async fn follow<B>(
        &self,
        last: Option<u64>,
        mut take: impl FnMut(Event) -> ControlFlow<B>,
    ) -> Result<B, Error> {
        let (path, kind) = ("/v1/changes", "text/event-stream");
        let mut request = self
            .server
            .request(&Method::GET, path, kind, Bytes::new())?;
        if let Some(last) = last {
            let id = HeaderValue::from(last);
            request.headers_mut().insert("last-event-id", id);
        }
        let response = self.server.ask(request, None).await?;
        let (mut body, mut reader) = (response.into_body(), EventReader::default());
        let mut heard = Instant::now();
        loop {
            let next = timeout_at(heard + SILENCE, body.frame()).await;
            let silent =
                |_| Error::Senseless(format!("nothing for {} s", SILENCE.as_secs()).into());
            let Some(frame) = next.map_err(silent)? else {
                return Err(Error::Senseless("it ends the stream of changes".into()));
            };
            let bytes = frame?.into_data().unwrap_or_default();
            let mut rest = &bytes[..];
            while let Some(event) = reader.next(&mut rest)? {
                heard = Instant::now();
                if let ControlFlow::Break(end) = take(event) {
                    return Ok(end);
                }
            }
        }
    }
}

impl Default for EventReader {
    fn default() -> Self {
        Self(SseReader::new(LONGEST))
    }
}

impl EventReader {
    /// Returns the next complete event and advances `bytes` past it; `None` when `bytes` is used up. Do not continue
    /// after an error.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, Error> {
        let senseless = |error: SseError| Error::Senseless(error.into());
        let event = self.0.next(bytes).map_err(senseless)?;
        let parse = |event: SseEvent| Event::read(&event.name, event.id, &event.data);
        event.map(parse).transpose()
    }
}

impl Event {
    /// Parses an event.
    fn read(name: &str, number: Option<u64>, data: &str) -> Result<Self, Error> {
        let senseless = |error: serde_json::Error| Error::Senseless(error.into());
        Ok(match name {
            "begin" => Self::Begin,
            "ready" => Self::Ready(number.unwrap_or_default()),
            "alive" => Self::Alive,
            "late" => {
                let late: Late = serde_json::from_str(data).map_err(senseless)?;
                Self::Late(Duration::from_millis(late.milliseconds))
            }
            "put" | "withdrawn" => Self::Changed {
                number,
                put: Box::new(serde_json::from_str(data).map_err(senseless)?),
            },
            other => return Err(Error::Senseless(format!("an event {other:?}").into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events parsed one byte at a time, until the end or an error.
    fn read(text: &str) -> (Vec<Event>, Option<String>) {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        for byte in text.as_bytes() {
            match reader.next(&mut &[*byte][..]) {
                Ok(event) => events.extend(event),
                Err(error) => return (events, Some(error.to_string())),
            }
        }
        (events, None)
    }

    #[test]
    fn lines_end_in_three_ways_and_fields_stand_in_any_order() {
        for end in ["\n", "\r", "\r\n"] {
            let text = "\u{feff}data: 1|event:ready|id: 7||:a comment|retry: 5||event: alive|data||data:|event: begin||";
            let (events, error) = read(&text.replace('|', end));
            assert_eq!(events, [Event::Ready(7), Event::Alive, Event::Begin]);
            assert_eq!(error, None);
        }
    }

    #[test]
    fn an_event_has_its_own_number_or_none() {
        let data = r#"data: {"type":"books",|data: "provider":"ada","name":"Gold"}||"#;
        let text = format!("id: 3|event: withdrawn|{data}event: withdrawn|{data}");
        let (events, _) = read(&text.replace('|', "\n"));
        let numbers = events.iter().map(|event| match event {
            Event::Changed { number, .. } => *number,
            other => panic!("{other:?}"),
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(3), None]);
    }

    #[test]
    fn invalid_events_are_refused() {
        for (text, expected) in [
            ("data: x\n\n", "an event \"\""),
            ("event: put\ndata: {}\n\n", "missing field"),
        ] {
            let (events, error) = read(text);
            assert_eq!(events, []);
            assert!(error.unwrap().contains(expected), "{text:?}");
        }
        let mut reader = EventReader::default();
        assert!(reader.next(&mut &b"data: \xff\n"[..]).is_err());
        let mut reader = EventReader::default();
        let endless = vec![b'x'; LONGEST + 1];
        let error = reader.next(&mut &endless[..]).unwrap_err();
        assert!(
            error.to_string().contains("more than 8388608 bytes"),
            "{error}"
        );
    }
}

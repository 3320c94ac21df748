//! Stream of changes.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use posthaste_qos::Offer;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::error::Error;
use crate::reader::EventReader;
use crate::wire::request;

/// Maximum silence of a stream. A working broker sends an event every second.
const SILENCE: Duration = Duration::from_secs(10);

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

impl Client {
    /// Passes the broker's events to `take`: all offers first, or the changes after number `last`, then changes as they
    /// happen. Returns when `take` breaks. Fails when the stream ends; then call it again with the number of the last
    /// change.
    pub async fn follow<B>(
        &self,
        last: Option<u64>,
        mut take: impl FnMut(Event) -> ControlFlow<B>,
    ) -> Result<B, Error> {
        let mut request = request(
            Method::GET,
            "/v1/changes",
            "text/event-stream",
            Bytes::new(),
        );
        if let Some(last) = last {
            let id = HeaderValue::from(last);
            request.headers_mut().insert("last-event-id", id);
        }
        let response = self.place.ask(request, None).await?;
        let (mut body, mut reader) = (response.into_body(), EventReader::default());
        let mut heard = Instant::now();
        loop {
            let next = timeout_at(heard + SILENCE, body.frame()).await;
            let silent = |_| Error::Senseless(format!("nothing for {} s", SILENCE.as_secs()));
            let Some(frame) = next.map_err(silent)? else {
                return Err(Error::Senseless("it ends the stream of changes".to_owned()));
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

impl Event {
    /// Parses an event.
    pub(crate) fn read(name: &str, number: Option<u64>, data: &str) -> Result<Self, Error> {
        let senseless = |error: serde_json::Error| Error::Senseless(error.to_string());
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
            other => return Err(Error::Senseless(format!("an event {other:?}"))),
        })
    }
}

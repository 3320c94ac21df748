//! The stream of changes.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use posthaste_wsqos::qos::Offer;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::error::Error;
use crate::reader::EventReader;
use crate::wire::request;

/// A broker says every second that it is alive; one that is silent for longer than this is not.
const SILENCE: Duration = Duration::from_secs(10);

/// Something that a broker tells its followers.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Forget all offers: those that there are follow.
    Begin,
    /// An offer says this from now on, or is withdrawn.
    Changed {
        /// The change's number; none where it only says what there is.
        number: Option<u64>,
        /// The change.
        put: Box<Put>,
    },
    /// Everything up to this change has been told.
    Ready(u64),
    /// Nothing has happened; the broker is there.
    Alive,
    /// The broker is there, and has not heard for so long what happens where it has its offers from.
    Late(Duration),
}

/// What an offer says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Put {
    /// The type of interface.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose it is.
    pub provider: String,
    /// What it is called.
    pub name: String,
    /// When the broker has kept the change; none where it only says what there is.
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// The offer; none where it is withdrawn.
    #[serde(default)]
    pub offer: Option<Offer>,
}

#[derive(Deserialize)]
struct Late {
    milliseconds: u64,
}

impl Client {
    /// Tells `take` what happens at the broker from now on, all there is first; or, from the change `last` on, what
    /// has been missed. Ends when `take` says so, and with an error when the stream does: call it again then, with
    /// the number of the last change.
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
    /// What an event of this name means.
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

//! Stream of changes: server-sent events, for followers and other readers.
//!
//! | event | data | meaning |
//! |---|---|---|
//! | `begin` | | discard all offers: a complete transfer follows |
//! | `put` | a change with an offer | new content of the offer |
//! | `withdrawn` | a change without an offer | the offer no longer exists |
//! | `ready` | | the transfer is complete: changes follow as they happen |
//! | `alive` | | no event during [`BEAT`] |
//! | `late` | age in milliseconds | as `alive`, but the source is unreachable and the offers are this old |
//!
//! The event id of a change is its number. A reader that reconnects with it (`Last-Event-ID`) gets the changes since
//! then, or a `begin` if the log no longer has them.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use hyper::http::request::Parts;
use posthaste_qos::Offer;
use posthaste_qos::index::Found;
use posthaste_serve::sse::write_event;
use serde::Serialize;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;

use super::BrokerHandler;
use super::problem::ProblemDetails;
use crate::change::{OfferChange, OfferKey};
use crate::context::BrokerContext;
use crate::store::Log;

/// Maximum silence of a stream before it sends `alive` or `late`.
const BEAT: Duration = Duration::from_secs(1);

/// Changes read from the store's log at a time.
const PAGE: usize = 1_000;

/// Bytes that are sent together.
const PIECE: usize = 64 << 10;

/// Maximum number of pieces queued for a reader.
const WAITING: usize = 4;

/// Body of a stream.
pub(crate) struct Events(mpsc::Receiver<Bytes>);

/// Writing end of a stream.
struct Teller {
    context: Arc<BrokerContext>,
    pieces: mpsc::Sender<Bytes>,
    text: Vec<u8>,
}

/// End of a stream: the reader has disconnected, or the stream cannot continue from its position.
struct Over;

impl BrokerHandler {
    /// Starts a stream. A reader with a `Last-Event-ID` continues from there.
    pub(super) fn changes(&self, parts: &Parts) -> Result<Events, ProblemDetails> {
        let last = match parts.headers.get("last-event-id") {
            None => None,
            Some(id) => {
                let number = id.to_str().ok().and_then(|id| id.parse().ok());
                let detail =
                    "Last-Event-ID is not the number of a change: leave it out to get all offers";
                Some(number.ok_or_else(|| ProblemDetails::bad(detail))?)
            }
        };
        let (pieces, events) = mpsc::channel(WAITING);
        let teller = Teller {
            context: self.context.clone(),
            pieces,
            text: Vec::with_capacity(PIECE),
        };
        tokio::task::spawn_local(async move {
            // Ends when the reader disconnects or the stream cannot continue.
            let Err(Over) = teller.tell(last).await;
        });
        Ok(Events(events))
    }
}

impl Teller {
    async fn tell(mut self, last: Option<u64>) -> Result<Infallible, Over> {
        let (mut changes, number) = {
            let current = self.context.registry.read();
            (current.follow(), current.number)
        };
        let missed = match last {
            Some(last) if last <= number => self.catch_up(last, number).await?,
            _ => false,
        };
        if !missed {
            self.begin().await?;
        }
        self.event("ready", Some(number), &());
        if self.context.registry.age().is_some() {
            self.beat();
        }
        self.flush().await?;
        loop {
            match tokio::time::timeout(BEAT, changes.recv()).await {
                Ok(Ok(change)) => {
                    self.change(&change);
                    loop {
                        match changes.try_recv() {
                            Ok(change) => self.change(&change),
                            Err(TryRecvError::Empty) => break,
                            Err(TryRecvError::Lagged(_) | TryRecvError::Closed) => {
                                return Err(Over);
                            }
                        }
                        self.flush_full().await?;
                    }
                }
                // The reader is too slow, or the index has been replaced.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return Err(Over),
                Err(_) => self.beat(),
            }
            self.flush().await?;
        }
    }

    /// Sends the changes from `last` to `number`. Returns false if the log no longer has them.
    async fn catch_up(&mut self, mut last: u64, number: u64) -> Result<bool, Over> {
        while last < number {
            let Some(writer) = &self.context.writer else {
                return Ok(false);
            };
            let log = writer.since(last, PAGE).await.map_err(|_| Over)?;
            let Log::Changes(changes) = log else {
                return Ok(false);
            };
            if changes.is_empty() {
                break;
            }
            for change in changes.iter().filter(|change| change.number <= number) {
                self.change(change);
            }
            last = changes.last().map_or(number, |change| change.number);
            self.flush().await?;
        }
        Ok(true)
    }

    /// Sends all offers. Offers that change during the transfer are sent again afterwards.
    async fn begin(&mut self) -> Result<(), Over> {
        self.text.clear();
        self.event("begin", None, &());
        let kinds: Vec<String> = {
            let current = self.context.registry.read();
            current.index.kinds().map(str::to_owned).collect()
        };
        for kind in kinds {
            let mut after = None;
            loop {
                {
                    let current = self.context.registry.read();
                    let (offers, last) = current.index.page(&kind, after, PAGE);
                    after = last;
                    for Found { provider, offer } in offers {
                        let key = OfferKey::new(&kind, provider, &offer.name);
                        event(&mut self.text, "put", None, &There { key, offer });
                    }
                }
                self.flush().await?;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Appends `alive`, or `late` if the broker is out of step.
    fn beat(&mut self) {
        match self.context.registry.age() {
            None => self.event("alive", None, &()),
            Some(age) => {
                let milliseconds = age.as_millis();
                self.event("late", None, &Late { milliseconds });
            }
        }
    }

    fn change(&mut self, change: &OfferChange) {
        let name = match change.offer {
            Some(_) => "put",
            None => "withdrawn",
        };
        self.event(name, Some(change.number), change);
    }

    fn event(&mut self, name: &str, id: Option<u64>, data: &impl Serialize) {
        event(&mut self.text, name, id, data);
    }

    async fn flush_full(&mut self) -> Result<(), Over> {
        if self.text.len() < PIECE {
            Ok(())
        } else {
            self.flush().await
        }
    }

    async fn flush(&mut self) -> Result<(), Over> {
        if self.text.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.text, Vec::with_capacity(1 << 10));
        self.pieces.send(piece.into()).await.map_err(|_| Over)
    }
}

/// An existing offer, in the form of a change.
#[derive(Serialize)]
struct There {
    #[serde(flatten)]
    key: OfferKey,
    offer: Offer,
}

/// Age of the offers.
#[derive(Serialize)]
struct Late {
    milliseconds: u128,
}

/// Appends an event. Compact JSON has no line breaks.
fn event(to: &mut Vec<u8>, name: &str, id: Option<u64>, data: &impl Serialize) {
    write_event(to, name, id, |to| {
        serde_json::to_writer(to, data).expect("the types of this crate can be serialised");
    });
}

impl Events {
    /// The next piece of the body.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(self.0.poll_recv(cx));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

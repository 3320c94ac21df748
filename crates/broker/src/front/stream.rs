//! The stream of changes: server-sent events, for brokers that follow this one and for whoever wants to know.
//!
//! | event | data | means |
//! |---|---|---|
//! | `begin` | | forget what you had: all offers follow |
//! | `put` | a change with an offer | it says this from now on |
//! | `withdrawn` | a change without one | it is no more |
//! | `ready` | | you have all there is: what follows happens from now on |
//! | `alive` | | nothing has happened for [`BEAT`] |
//! | `late` | for how many milliseconds | the same, and what is told is that old: its source is out of reach |
//!
//! Changes that happen have their number as the event's id; a reader that comes back with it (`Last-Event-ID`) gets
//! what it has missed, or a `begin` where that has been forgotten.

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Frame;
use hyper::http::request::Parts;
use posthaste_wsqos::index::Found;
use posthaste_wsqos::qos::Offer;
use serde::Serialize;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;

use super::Front;
use super::problem::Problem;
use super::reply::Reply;
use crate::change::{Change, Key};
use crate::house::House;
use crate::store::Log;

/// After how long a stream with nothing to tell says that it is alive.
const BEAT: Duration = Duration::from_secs(1);

/// Changes that are read from the store's log at a time.
const PAGE: usize = 1_000;

/// Bytes that are sent together.
const PIECE: usize = 64 << 10;

/// Pieces that wait for a reader.
const WAITING: usize = 4;

/// The body of a stream.
pub(crate) struct Events(mpsc::Receiver<Bytes>);

/// The stream's writing end.
struct Teller {
    house: Arc<House>,
    pieces: mpsc::Sender<Bytes>,
    text: Vec<u8>,
}

/// The reader is gone, or the stream does not go on from where it is.
struct Over;

impl Front {
    /// Begins a stream; a reader that has been here before goes on from where it was.
    pub(super) fn changes(&self, parts: &Parts) -> Result<Reply, Problem> {
        let last = match parts.headers.get("last-event-id") {
            None => None,
            Some(id) => {
                let number = id.to_str().ok().and_then(|id| id.parse().ok());
                let words =
                    "Last-Event-ID is not the number of a change: leave it out to begin anew";
                Some(number.ok_or_else(|| Problem::bad(words))?)
            }
        };
        let (pieces, events) = mpsc::channel(WAITING);
        let teller = Teller {
            house: self.house.clone(),
            pieces,
            text: Vec::with_capacity(PIECE),
        };
        tokio::task::spawn_local(async move {
            // Either end may end it.
            let Err(Over) = teller.tell(last).await;
        });
        Ok(Reply::events(Events(events)))
    }
}

impl Teller {
    async fn tell(mut self, last: Option<u64>) -> Result<Infallible, Over> {
        let (mut changes, number) = {
            let seen = self.house.registry.seen();
            (seen.follow(), seen.number)
        };
        let missed = match last {
            Some(last) if last <= number => self.catch_up(last, number).await?,
            _ => false,
        };
        if !missed {
            self.begin().await?;
        }
        self.event("ready", Some(number), &());
        if self.house.registry.age().is_some() {
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
                // It is late by more than is kept, or all has begun anew.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return Err(Over),
                Err(_) => self.beat(),
            }
            self.flush().await?;
        }
    }

    /// What has happened from `last` to `number`, if the store still knows.
    async fn catch_up(&mut self, mut last: u64, number: u64) -> Result<bool, Over> {
        while last < number {
            let Some(keeper) = &self.house.keeper else {
                return Ok(false);
            };
            let log = keeper.since(last, PAGE).await.map_err(|_| Over)?;
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

    /// All there is. What changes meanwhile comes again afterwards.
    async fn begin(&mut self) -> Result<(), Over> {
        self.text.clear();
        self.event("begin", None, &());
        let kinds: Vec<String> = {
            let seen = self.house.registry.seen();
            seen.index.kinds().map(str::to_owned).collect()
        };
        for kind in kinds {
            let mut after = None;
            loop {
                {
                    let seen = self.house.registry.seen();
                    let (offers, last) = seen.index.page(&kind, after, PAGE);
                    after = last;
                    for Found { provider, offer } in offers {
                        let key = Key::new(&kind, provider, &offer.name);
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

    /// That nothing has happened, as far as is known here.
    fn beat(&mut self) {
        match self.house.registry.age() {
            None => self.event("alive", None, &()),
            Some(age) => {
                let milliseconds = age.as_millis();
                self.event("late", None, &Late { milliseconds });
            }
        }
    }

    fn change(&mut self, change: &Change) {
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
        match self.text.len() < PIECE {
            true => Ok(()),
            false => self.flush().await,
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

/// An offer that is there, whenever it came.
#[derive(Serialize)]
struct There {
    #[serde(flatten)]
    key: Key,
    offer: Offer,
}

/// How old what is told is.
#[derive(Serialize)]
struct Late {
    milliseconds: u128,
}

/// Appends an event. JSON has no line ends of its own.
fn event(to: &mut Vec<u8>, name: &str, id: Option<u64>, data: &impl Serialize) {
    // Writing to memory cannot fail, and our own types can always be written.
    if let Some(id) = id {
        let _ = writeln!(to, "id: {id}");
    }
    let _ = write!(to, "event: {name}\ndata: ");
    let _ = serde_json::to_writer(&mut *to, data);
    to.extend_from_slice(b"\n\n");
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

//! The event loop of one core. [`EventLoop::run`] is the list of its stages:
//!
//! | module | stage |
//! |---|---|
//! | `due` | takes requests and retries that are due |
//! | `wait` | sleeps until shortly before the next request is due, and polls from there (`spin`) |
//! | `events` | handles events of connections |
//! | `handshake` | completes connections: TCP, TLS |
//! | `timeouts` | ends exchanges and connections that are late |
//!
//! The stages call the part of the protocol, which borrows the parts of the loop:
//!
//! | module | part |
//! |---|---|
//! | `http1` | sends requests one after the other on connections of HTTP/1.1 |
//! | `streams` | assigns requests to streams of HTTP/2 and HTTP/3, and sends and receives them |
//! | `requests` | requests from due to recorded: arrivals, exchanges, recording, offers |
//! | `connections` | sockets, idle connections, addresses, deadlines |
//! | `shared` | state shared by all loops of a run |

mod buffers;
mod connections;
mod due;
mod events;
mod handshake;
mod http1;
mod requests;
mod shared;
mod spin;
mod streams;
mod timeouts;
mod wait;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use posthaste_units::Instant;
use rustix::io::Errno;

use self::buffers::LoopBuffers;
use self::connections::LoopConnections;
use self::http1::Http1;
use self::requests::LoopRequests;
pub(crate) use self::shared::Shared;
use self::spin::SpinTime;
use self::streams::{StreamQueues, Streams};
use crate::tally::LoadTally;
use crate::tally::seconds::LoopSecond;

/// Expires timeouts after this many consecutive turns with a full batch of events.
const EXPIRE_EVERY: u32 = 16;
/// Events of one batch.
const BATCH: usize = 256;

/// One event loop with its connections.
pub(crate) struct EventLoop<'r> {
    shared: &'r Shared<'r>,
    requests: LoopRequests<'r>,
    connections: LoopConnections<'r>,
    /// Requests and connections of HTTP/2 and HTTP/3.
    queues: StreamQueues,
    spin: SpinTime,
    buffers: LoopBuffers,
}

impl<'r> EventLoop<'r> {
    pub(crate) fn new(
        shared: &'r Shared<'r>,
        index: usize,
        seconds: Sender<LoopSecond>,
        empty: Receiver<Box<LoadTally>>,
    ) -> Result<Self, Errno> {
        let position = shared.share.first + index;
        Ok(Self {
            shared,
            requests: LoopRequests::new(shared, index, seconds, empty),
            connections: LoopConnections::new(shared, position)?,
            queues: StreamQueues::new(shared.plan, shared.origins.len()),
            spin: SpinTime::new(),
            buffers: LoopBuffers::new(),
        })
    }

    /// Runs until every due request has ended or the run is stopped. The measurements are in the reports of the
    /// seconds.
    pub(crate) fn run(mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(BATCH);
        let mut full_turns = 0;
        loop {
            let now = self.shared.clock.now();
            self.requests.recording.record_bytes(now);
            if let Some(over) = self.stopped_at(now) {
                self.requests.recording.tally.over = over;
                self.requests.skip_overdue();
                break;
            }
            self.begin_due(now);
            self.streams().flush_listed();
            self.requests.recording.tally.over = self.shared.clock.now();
            if self.requests.arrivals.is_finished() {
                break;
            }
            let before = self.shared.clock.now();
            self.wait(&mut events)?;
            self.handle_events(&events);
            self.receive_rest();
            self.streams().expire_timers(before);
            self.streams().flush_listed();
            // A deadline may belong to a connection with a pending event, so events come first. Not without end: at
            // saturation every batch of events is full.
            let is_full = events.len() == events.capacity();
            full_turns = if is_full { full_turns + 1 } else { 0 };
            if full_turns % EXPIRE_EVERY == 0 {
                self.expire_timeouts(before);
            }
        }
        self.requests.end_unfinished();
        self.connections.end(&mut self.requests.recording.tally);
        self.requests.recording.report_end(self.shared.clock.now());
        Ok(())
    }

    /// The time at which the run was stopped, if it was.
    fn stopped_at(&self, now: Instant) -> Option<Instant> {
        if self.shared.incomplete.load(Ordering::Relaxed) {
            Some(now)
        } else {
            self.shared.stop.reached(now)
        }
    }

    /// The part for HTTP/1.1.
    const fn http1(&mut self) -> Http1<'_, 'r> {
        Http1 {
            shared: self.shared,
            requests: &mut self.requests,
            connections: &mut self.connections,
            buffers: &mut self.buffers,
        }
    }

    /// The part for HTTP/2 and HTTP/3.
    const fn streams(&mut self) -> Streams<'_, 'r> {
        Streams {
            shared: self.shared,
            requests: &mut self.requests,
            connections: &mut self.connections,
            queues: &mut self.queues,
            buffers: &mut self.buffers,
        }
    }
}

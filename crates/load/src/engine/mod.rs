//! The event loop of one core: begin requests that are due, handle events, end late exchanges.
//!
//! [`EventLoop::run`] shows one turn of the loop. The loop sleeps in the kernel until shortly before the next request is
//! due and polls from there on (module `margin`), so a request leaves within microseconds of its time.

mod buying;
mod connect;
mod exchange;
mod margin;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use posthaste_units::{Instant, Span};
use rand::RngExt as _;
use rustix::event::epoll;
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use slab::Slab;

use self::exchange::Unread;
use self::margin::SpinTime;
use crate::buying::{Buyer, FollowedCatalogue};
use crate::clock::RunClock;
use crate::connection::{ConnectionState, HttpConnection, HttpExchange};
use crate::fifo::Fifo;
use crate::http::Budget;
use crate::mix::Mix;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::socket;
use crate::source::{Due, RequestSource};
use crate::tally::{Ending, LoopTally, Moments, Tick};
use crate::target::TargetOrigin;

/// Grace period for the server to close a connection before we reset it.
const CLOSING: Span = Span::from_secs(1);
/// A request this late at the end of the plan is not sent. Sending ends at most this long after the plan.
const OVERDUE: Span = Span::from_millis(500);
/// Wait of a client after a request that could not be sent.
const AFTER_FAILURE: Span = Span::from_millis(10);
/// Interval of reports, and maximum interval between checks for Ctrl-C.
const TICK: Span = Span::from_secs(1);
const LOOK_AROUND: Span = Span::from_millis(100);
/// Expires time-outs after this many consecutive turns with a full batch of events.
const EXPIRE_EVERY: u32 = 16;
/// Requests begun before replies are read again.
const BURST: usize = 32;

/// State shared by all event loops of a run.
pub(crate) struct Shared<'r> {
    pub(crate) plan: &'r Plan,
    pub(crate) mix: Mix,
    pub(crate) origins: Vec<TargetOrigin>,
    pub(crate) names: HashMap<usize, ServerName<'static>>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) clock: RunClock,
    /// Offers, if clients choose by price.
    pub(crate) offers: Option<FollowedCatalogue>,
    pub(crate) stop: &'r AtomicBool,
    /// True if a loop of the run could not be started, so that the others do not begin.
    pub(crate) incomplete: AtomicBool,
    /// Memory for coded replies, if the plan decodes.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Maximum number of open connections per loop.
    pub(crate) limit: usize,
    pub(crate) window: (Instant, Instant),
}

/// One event loop with its connections.
pub(crate) struct EventLoop<'r> {
    shared: &'r Shared<'r>,
    source: RequestSource,
    epoll: rustix::fd::OwnedFd,
    connections: Slab<HttpConnection>,
    idle: Vec<Vec<u32>>,
    unread: Vec<Unread>,
    connecting: Fifo,
    replying: Fifo,
    closing: Fifo,
    in_flight: usize,
    serial: u32,
    tally: LoopTally,
    buyer: Option<Buyer<'r>>,
    ticks: Sender<Tick>,
    next_tick: Instant,
    /// Bytes sent and received before the measured time.
    bytes_before: [u64; 2],
    margin: SpinTime,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'r> EventLoop<'r> {
    pub(crate) fn new(
        shared: &'r Shared<'r>,
        index: usize,
        ticks: Sender<Tick>,
    ) -> Result<Self, Errno> {
        Ok(Self {
            shared,
            source: RequestSource::new(shared.plan, index),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Slab::new(),
            idle: vec![Vec::new(); shared.origins.len()],
            unread: Vec::new(),
            connecting: Fifo::new(),
            replying: Fifo::new(),
            closing: Fifo::new(),
            in_flight: 0,
            serial: 0,
            tally: LoopTally::new(shared.plan.step_ends(), shared.mix.len()),
            buyer: shared.offers.as_ref().map(|offers| {
                let mut phase = shared
                    .plan
                    .seed
                    .numbered("asks", index as u64)
                    .stream("phase");
                Buyer::new(&offers.catalogue, phase.random())
            }),
            ticks,
            next_tick: Instant::ORIGIN + TICK,
            bytes_before: [0; 2],
            margin: SpinTime::new(),
            buffer: vec![0; 64 * 1024],
            scratch: Vec::new(),
        })
    }

    /// Runs until every due request has ended or the run is stopped.
    pub(crate) fn run(mut self) -> Result<LoopTally, Errno> {
        let mut events = Vec::with_capacity(256);
        let mut full_turns = 0;
        loop {
            let now = self.shared.clock.now();
            self.count_bytes(now);
            self.begin_due(now);
            if self.is_over() {
                break;
            }
            let before = self.shared.clock.now();
            let all = self.poll(&mut events)?;
            self.read_on();
            // A deadline may belong to a connection with a pending event, so events come first. Not without end: at
            // saturation every batch of events is full.
            full_turns = if all { 0 } else { full_turns + 1 };
            if full_turns % EXPIRE_EVERY == 0 {
                self.expire(before);
            }
            self.report(before);
        }
        self.abandon();
        Ok(self.tally)
    }

    fn is_over(&mut self) -> bool {
        let ordered = [self.shared.stop, &self.shared.incomplete];
        if ordered.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            self.tally.over = self.shared.clock.now();
            // Requests that became due count, even if this loop has not begun them.
            while let Some(due) = self.source.overdue(self.tally.over) {
                self.skip(Outcome::InFlight, &due, self.tally.over);
            }
            self.source.stop();
            return true;
        }
        self.tally.over = self.shared.clock.now();
        self.in_flight == 0 && self.source.next_due().is_none()
    }

    fn begin_due(&mut self, now: Instant) {
        for _ in 0..BURST {
            let Some(due) = self.source.take(now) else {
                return;
            };
            // Sending ends with the plan. The remaining backlog is counted and not sent.
            if now > self.shared.window.1 && now.since(due.at) > OVERDUE {
                self.skip(Outcome::Dropped, &due, now);
            } else {
                self.begin(due);
            }
        }
    }

    /// Counts a request that is due and not begun.
    fn skip(&mut self, outcome: Outcome, due: &Due, now: Instant) {
        let request = self.shared.mix.pick(due.number);
        let times = (self.shared.window.0, now);
        self.tally.not_begun(outcome, due, request, times);
        if outcome == Outcome::Dropped {
            let reason = || "the plan had ended before the generator came to it".to_owned();
            self.tally.explain(outcome, reason);
        }
    }

    /// Counts a request that is due.
    fn intend(&mut self, due: Due) -> HttpExchange {
        let request = self.shared.mix.pick(due.number);
        let sent = self.shared.clock.now();
        let moments = Moments {
            intended: due.at,
            sent,
            written: sent,
            ..Moments::default()
        };
        let exchange = HttpExchange {
            due,
            request,
            moments,
            quoted: false,
        };
        self.in_flight += 1;
        if self.is_recorded(&exchange) {
            self.tally.intended += 1;
            self.tally.tick.intended += 1;
        } else {
            self.tally.warm_up += 1;
        }
        exchange
    }

    /// Sends a request on an idle connection or on a new one.
    fn begin(&mut self, due: Due) {
        let exchange = self.intend(due);
        let (request, sent) = (exchange.request, exchange.moments.sent);
        if !self.buy(&exchange) {
            return;
        }
        let origin = self.shared.mix.requests[request].origin;
        if let Some(slot) = self.idle[origin].pop() {
            self.note_sent(&exchange);
            let index = slot as usize;
            self.connections[index].exchange = Some(exchange);
            self.replying.push(slot, sent + self.shared.plan.timeout);
            self.write_request(slot);
        } else if self.connections.len() >= self.shared.limit && !self.make_room() {
            self.settle(&exchange, Outcome::Dropped, sent);
        } else {
            self.connect(origin, exchange);
        }
    }

    /// Closes the connection to another origin that has been idle for longest.
    fn make_room(&mut self) -> bool {
        let mut idle = self.idle.iter_mut().filter(|idle| !idle.is_empty());
        let Some(slot) = idle.next().map(|idle| idle.remove(0)) else {
            return false;
        };
        self.remove(slot);
        true
    }

    /// Waits for epoll events and handles them. Returns true if no more are pending.
    fn poll(&mut self, events: &mut Vec<epoll::Event>) -> Result<bool, Errno> {
        events.clear();
        let now = self.shared.clock.now();
        let until = if self.unread.is_empty() {
            self.awaited(now)
        } else {
            now
        };
        let patience = until.saturating_since(now);
        let timeout = rustix::event::Timespec {
            tv_sec: (patience.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (patience.as_nanos() % 1_000_000_000) as _,
        };
        let spare = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            Ok(0) if !patience.is_zero() => self.margin.slept(until, self.shared.clock.now()),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno),
        }
        for event in events.iter() {
            let token = event.data.u64();
            let (slot, serial) = (token as u32, (token >> 32) as u32);
            let alive = self
                .connections
                .get(slot as usize)
                .is_some_and(|connection| connection.serial == serial);
            if alive {
                self.handle(slot, event.flags);
            }
        }
        Ok(events.len() < events.capacity())
    }

    /// Returns the end of the next sleep.
    fn awaited(&self, now: Instant) -> Instant {
        let deadlines = [&self.connecting, &self.replying, &self.closing];
        let earliest = deadlines.into_iter().filter_map(Fifo::next_due).min();
        let look_around = now + LOOK_AROUND;
        let until = earliest.map_or(look_around, |due| due.min(look_around));
        match self.source.next_due() {
            Some(due) => until.min(self.margin.before(due, now)),
            None => until,
        }
    }

    /// Ends exchanges and connections whose deadline has passed.
    fn expire(&mut self, now: Instant) {
        while let Some(slot) = self.connecting.pop_due(now) {
            self.fail(slot, Outcome::ConnectAborted, || {
                "no connection within the connect timeout".to_owned()
            });
        }
        while let Some(slot) = self.replying.pop_due(now) {
            let connection = &self.connections[slot as usize];
            let silent = connection
                .exchange
                .is_some_and(|exchange| exchange.moments.first_byte.is_none());
            let phantom = silent && !socket::is_acknowledged(&connection.socket);
            let outcome = match connection.state {
                ConnectionState::Connecting => Outcome::ConnectAborted,
                _ if phantom => Outcome::Unanswered,
                _ => Outcome::TimedOut,
            };
            self.fail(slot, outcome, || outcome.meaning().to_owned());
        }
        while let Some(slot) = self.closing.pop_due(now) {
            self.abort(slot);
        }
    }

    /// Ends an exchange without a complete reply, and its connection.
    fn fail(&mut self, slot: u32, outcome: Outcome, reason: impl FnOnce() -> String) {
        self.connecting.remove(slot);
        self.replying.remove(slot);
        self.tally.explain(outcome, reason);
        if let Some(exchange) = self.connections[slot as usize].exchange.take() {
            let now = self.shared.clock.now();
            self.settle(&exchange, outcome, now);
        }
        self.abort(slot);
    }

    /// Records an end and lets the client continue.
    fn settle(&mut self, exchange: &HttpExchange, outcome: Outcome, done: Instant) {
        self.in_flight -= 1;
        self.tally.ended(&Ending {
            outcome,
            step: exchange.due.step,
            request: exchange.request,
            moments: &exchange.moments,
            done,
            window: self.shared.window,
        });
        let think = self.shared.mix.requests[exchange.request].think;
        let pause = match outcome {
            Outcome::Ok | Outcome::SoapFault | Outcome::StatusError => think,
            _ => think.max(AFTER_FAILURE),
        };
        self.source.ended(exchange.due.client, done, pause);
    }

    fn note_sent(&mut self, exchange: &HttpExchange) {
        let Moments { intended, sent, .. } = exchange.moments;
        if self.is_recorded(exchange) {
            self.tally.sent_late(sent.saturating_since(intended));
        }
        let (start, end) = self.shared.window;
        self.tally.sent += u64::from(sent >= start && sent <= end);
    }

    fn is_recorded(&self, exchange: &HttpExchange) -> bool {
        exchange.due.at >= self.shared.window.0
    }

    /// Records the byte counts at the beginning and the end of the measured time.
    fn count_bytes(&mut self, now: Instant) {
        let (start, end) = self.shared.window;
        let bytes = [self.tally.bytes_sent, self.tally.bytes_received];
        if now < start {
            self.bytes_before = bytes;
        } else if now <= end {
            let [sent, received] = self.bytes_before;
            self.tally.bytes_in_time = [bytes[0] - sent, bytes[1] - received];
        }
    }

    /// Sends the records of the last second, once a second.
    fn report(&mut self, now: Instant) {
        if now >= self.next_tick {
            while self.next_tick <= now {
                self.next_tick += TICK;
            }
            // The receiver may be gone. The run's own records are complete without it.
            let _ = self.ticks.send(std::mem::take(&mut self.tally.tick));
        }
    }

    /// Counts unfinished requests when the run is stopped.
    fn abandon(&mut self) {
        let now = self.shared.clock.now();
        let unfinished: Vec<HttpExchange> = self
            .connections
            .iter_mut()
            .filter_map(|(_, c)| c.exchange.take())
            .collect();
        for exchange in unfinished {
            self.settle(&exchange, Outcome::InFlight, now);
        }
        for connection in self.connections.drain() {
            socket::abort(connection.socket);
        }
        let _ = self.ticks.send(std::mem::take(&mut self.tally.tick));
    }

    fn remove(&mut self, slot: u32) {
        drop(self.connections.remove(slot as usize));
    }

    fn abort(&mut self, slot: u32) {
        socket::abort(self.connections.remove(slot as usize).socket);
    }
}

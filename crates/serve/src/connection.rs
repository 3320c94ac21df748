//! One connection: its peer, its phase, and the start of the phase.
//!
//! The phase and the tick of its start are two cells ([`Timer`]), read by the thread's sweep. No timer is armed or
//! disarmed per request; this is the reason for not using hyper's own timer. Each HTTP/2 stream has a separate pair, so
//! that activity of one stream does not hide that another is stalled.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::Waker;

use hyper::header::HeaderValue;

use crate::check::Rejection;
use crate::counters::add_one;
use crate::mark::Marking;
use crate::network_path::{self, NetworkPath};
use crate::queues::{unacknowledged, unread};
use crate::room::make_room;
use crate::worker::{Thread, in_ticks};

/// Sweeps without a request before a connection releases its buffers.
const RESTS_AFTER: u32 = 2;

/// Sweeps after which an incomplete request, or an idle connection after a reply, counts as unused.
const UNUSED_AFTER: u32 = 1;

/// Size of the answer to an HTTP/2 PING (RFC 9113, section 6.7). It does not count as progress of a reply.
const PONG: usize = 17;

/// The sender of a request, and its connection.
pub struct Peer {
    /// Address of the peer.
    pub address: SocketAddr,
    /// Number of the connection on this thread, from 0.
    pub number: u64,
    /// Storage for the handler, kept with the connection; initially 0.
    pub note: Rc<Cell<u64>>,
    pub(crate) ip: OnceCell<HeaderValue>,
    pub(crate) connection: Rc<Connection>,
    pub(crate) thread: Rc<Thread>,
    /// The timer of the connection or of one of its streams.
    pub(crate) timer: Rc<Timer>,
}

impl Peer {
    /// The IP address as a field value, formatted once per connection.
    pub fn ip(&self) -> &HeaderValue {
        self.ip.get_or_init(|| {
            let text = self.address.ip().to_string();
            // Formatting cannot fail. "unknown" is the term of RFC 7239, section 6, for an unknown address.
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
        })
    }

    /// Starts or ends the time limit for a request's body, for handlers that read it themselves.
    pub fn reading(&self, reading: bool) {
        self.enter(Phase::Service { reading });
    }

    /// Returns this peer for one stream of its HTTP/2 connection.
    pub(crate) fn of_stream(&self) -> Self {
        Self {
            address: self.address,
            number: self.number,
            note: self.note.clone(),
            ip: self.ip.clone(),
            connection: self.connection.clone(),
            thread: self.thread.clone(),
            timer: Rc::default(),
        }
    }

    /// Closes an unused connection of this thread, to free a descriptor for a reply. False if every connection is in
    /// use.
    pub async fn make_room(&self) -> bool {
        make_room(&self.thread, false).await
    }

    fn enter(&self, phase: Phase) {
        self.timer.enter(phase, self.thread.ticks.get());
    }

    /// The kernel's data about the network path. `None` after the connection has closed.
    pub fn path(&self) -> Option<NetworkPath> {
        network_path::ask(self.connection.socket.get()?)
    }
}

/// The state of a connection for the sweep.
pub(crate) struct Connection {
    pub(crate) timer: Rc<Timer>,
    /// Tick of the accept.
    accepted: u32,
    /// A complete request has arrived.
    has_asked: Cell<bool>,
    /// Timers of HTTP/2 streams in service.
    streams: RefCell<Vec<Rc<Timer>>>,
    /// Set while data waits to be written: the tick of the peer's last progress.
    blocked: Cell<Option<u32>>,
    /// While idle: the bytes not acknowledged by the peer at the last sweep.
    left: Cell<u32>,
    over: Cell<bool>,
    /// The connection is to release its buffers, or has done so.
    resting: Cell<bool>,
    http2: Cell<bool>,
    /// The last request had a body, possibly unread in part.
    had_body: Cell<bool>,
    /// The last request's body is not completely read.
    body_left: Cell<bool>,
    /// HTTP/1: number of requests received.
    requests: Cell<u64>,
    /// HTTP/1: the number of the request to reject, always the last.
    rejected: Cell<Option<(u64, Rejection)>>,
    pub(crate) marking: Marking,
    /// The socket, until it is closed.
    socket: Cell<Option<RawFd>>,
    /// Requests at the handler; several at a time with HTTP/2.
    in_service: Cell<u32>,
    waker: RefCell<Option<Waker>>,
}

/// A phase, and the tick of its start or last progress.
#[derive(Default)]
pub(crate) struct Timer {
    phase: Cell<Phase>,
    since: Cell<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for a request.
    #[default]
    Idle,
    /// A request has begun and its header is not complete.
    Head,
    /// The handler has the request; `reading` while it waits for the body.
    Service { reading: bool },
    /// A piece of the reply is ready, and the next one has not been polled yet.
    Replying,
}

impl Timer {
    fn enter(&self, phase: Phase, now: u32) {
        self.phase.set(phase);
        self.since.set(now);
    }

    fn get(&self) -> (Phase, u32) {
        (self.phase.get(), self.since.get())
    }
}

/// True if enough sweeps have passed since that tick.
fn is_old(since: u32, now: u32) -> bool {
    now.saturating_sub(since) >= UNUSED_AFTER
}

impl Connection {
    pub(crate) fn new(socket: RawFd, now: u32) -> Self {
        let timer = Timer::default();
        timer.enter(Phase::Idle, now);
        Self {
            timer: Rc::new(timer),
            accepted: now,
            has_asked: Cell::new(false),
            streams: RefCell::default(),
            blocked: Cell::new(None),
            left: Cell::new(u32::MAX),
            over: Cell::new(false),
            resting: Cell::new(false),
            http2: Cell::new(false),
            had_body: Cell::new(false),
            body_left: Cell::new(false),
            requests: Cell::new(0),
            rejected: Cell::new(None),
            marking: Marking::default(),
            socket: Cell::new(Some(socket)),
            in_service: Cell::new(0),
            waker: RefCell::new(None),
        }
    }

    /// Enforces the timeouts: ends an overdue connection and releases the buffers of an idle one.
    pub(crate) fn judge(&self, thread: &Thread) {
        if self.over.get() {
            return;
        }
        let (limits, counters) = (&thread.server.timeouts, &thread.server.counters);
        let lasted = |since: u32| thread.ticks.get().saturating_sub(since);
        let passed = |since: u32, limit| lasted(since) > in_ticks(limit);
        let late = |timer: &Timer| match timer.get() {
            (Phase::Replying, since) if passed(since, limits.write) => {
                Some(&counters.timed_out_writing)
            }
            (Phase::Service { reading: true }, since) if passed(since, limits.body) => {
                Some(&counters.timed_out_reading)
            }
            _ => None,
        };
        let (phase, since) = self.timer.get();
        let late_stream = || self.streams.borrow().iter().find_map(|timer| late(timer));
        let ended = match (self.blocked.get(), phase) {
            (Some(since), _) if passed(since, limits.write) => &counters.timed_out_writing,
            // During a write no other limit applies.
            (Some(_), _) => return,
            (None, Phase::Replying | Phase::Service { .. }) => {
                match late(&self.timer).or_else(late_stream) {
                    Some(counter) => counter,
                    None => return,
                }
            }
            (None, Phase::Idle) if passed(since, limits.idle) => {
                let left = self.socket.get().map_or(0, unacknowledged);
                match left < self.left.replace(left) {
                    // The kernel holds the reply, and the peer is still receiving it.
                    true if left > 0 => return self.timer.since.set(thread.ticks.get()),
                    _ if left == 0 => &counters.timed_out_idle,
                    _ if passed(since, limits.write) => &counters.timed_out_writing,
                    _ => return,
                }
            }
            (None, Phase::Head) if passed(since, limits.head) => &counters.timed_out_reading,
            (None, Phase::Idle) if lasted(since) >= RESTS_AFTER && !self.http2.get() => {
                return self.rest();
            }
            _ => return,
        };
        add_one(ended);
        self.end();
    }

    /// True if no complete request has arrived and the connection may be closed in favour of another.
    pub(crate) fn is_silent(&self, now: u32) -> bool {
        let (phase, _) = self.timer.get();
        let is_waiting = phase == Phase::Idle || is_old(self.accepted, now);
        !self.has_asked.get() && is_waiting && self.is_quiet()
    }

    /// The tick since when it waits for another request, if it may be closed in favour of another.
    pub(crate) fn idle_since(&self, now: u32) -> Option<u32> {
        let (phase, since) = self.timer.get();
        let is_idle = self.has_asked.get() && phase == Phase::Idle && is_old(since, now);
        (is_idle && self.is_quiet()).then_some(since)
    }

    /// True if no data is in transit: the peer has acknowledged everything, and no received data is unread.
    fn is_quiet(&self) -> bool {
        let is_quiet = |socket| unread(socket) == 0 && unacknowledged(socket) == 0;
        let is_usable = !self.over.get() && self.blocked.get().is_none();
        is_usable && self.socket.get().is_none_or(is_quiet)
    }

    fn rest(&self) {
        if !self.resting.replace(true) {
            self.wake();
        }
    }

    /// True if the buffers may be released now. A request that has begun takes precedence.
    pub(crate) fn may_rest(&self) -> bool {
        self.resting.get() && self.timer.phase.get() == Phase::Idle
    }

    /// Cancels or ends the release of the buffers.
    pub(crate) fn wake_up(&self) {
        self.resting.set(false);
    }

    /// HTTP begins, with this version.
    pub(crate) fn begin(&self, http2: bool, now: u32) {
        self.http2.set(http2);
        // Earlier idle time does not count: the first request may have arrived with the end of the handshake.
        self.resting.set(false);
        self.enter(Phase::Idle, now);
    }

    /// The socket, until it is closed.
    pub(crate) fn socket(&self) -> Option<RawFd> {
        self.socket.get()
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.http2.get()
    }

    /// The TLS handshake has begun.
    pub(crate) fn shake_hands(&self, now: u32) {
        self.enter(Phase::Head, now);
    }

    /// A request has arrived, with or without a body.
    pub(crate) fn has_body(&self, has: bool) {
        self.had_body.set(has);
        self.body_left.set(has);
    }

    /// The last request's body has been read completely.
    pub(crate) fn has_read_body(&self) {
        self.body_left.set(false);
    }

    /// True if the last request's body is not completely read.
    pub(crate) fn has_body_left(&self) -> bool {
        self.body_left.get()
    }

    /// Rejects the head of request `number`, from 1. No later byte is read.
    pub(crate) fn reject(&self, number: u64, rejection: Rejection) {
        self.rejected.set(Some((number, rejection)));
    }

    /// Counts a request of HTTP/1. Returns the rejection, if it must not be served.
    pub(crate) fn next_request(&self) -> Result<(), Rejection> {
        self.requests.set(self.requests.get() + 1);
        match self.rejected.get() {
            Some((number, rejection)) if number == self.requests.get() => Err(rejection),
            _ => Ok(()),
        }
    }

    /// True if the last request had a body.
    pub(crate) fn had_body(&self) -> bool {
        self.had_body.get()
    }

    /// All data has been sent; the peer's close is awaited.
    pub(crate) fn lingers(&self, now: u32) {
        self.enter(Phase::Idle, now);
    }

    /// Data has arrived. In HTTP/1, an idle connection enters the head phase. HTTP/2 has frames between requests, and
    /// an idle connection has its own limit.
    pub(crate) fn received(&self, now: u32) {
        self.resting.set(false);
        if !self.http2.get() && self.timer.phase.get() == Phase::Idle {
            self.enter(Phase::Head, now);
        }
    }

    /// Records a write: the peer took `taken` of `offered` bytes. HTTP/2 often hands over a reply long before the peer
    /// has taken it, so progress restarts the timers of idle and replying streams.
    pub(crate) fn wrote(&self, offered: usize, taken: usize, now: u32) {
        if taken == offered {
            self.blocked.set(None);
        } else if taken > 0 || self.blocked.get().is_none() {
            self.blocked.set(Some(now));
        }
        if taken > PONG {
            let streams = self.streams.borrow();
            let timers = std::iter::once(&self.timer).chain(&*streams);
            timers
                .filter(|timer| matches!(timer.phase.get(), Phase::Idle | Phase::Replying))
                .for_each(|timer| timer.since.set(now));
        }
    }

    /// Records that the socket is closed. Returns true if the connection was ended rather than finished.
    pub(crate) fn closed(&self) -> bool {
        self.socket.set(None);
        self.over.get()
    }

    /// True if the connection must close at once.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Stores the waker for [`Connection::wake`].
    pub(crate) fn wakes(&self, waker: &Waker) {
        if self.waker.borrow().is_none() {
            *self.waker.borrow_mut() = Some(waker.clone());
        }
    }

    /// Makes the connection close at its next poll, in any phase.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.wake();
    }

    /// Wakes the connection's task, so that it sees changes.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn enter(&self, phase: Phase, now: u32) {
        self.timer.enter(phase, now);
        self.left.set(u32::MAX);
    }
}

/// A request in service, from its head to the end of its reply or the client's cancellation (HTTP/2 resets a stream and
/// keeps its connection).
pub(crate) struct InService(Rc<Peer>);

impl InService {
    pub(crate) fn begin(peer: Rc<Peer>) -> Self {
        let connection = &peer.connection;
        connection.in_service.set(connection.in_service.get() + 1);
        if !connection.has_asked.replace(true) {
            peer.thread.room.is_silent_no_more(peer.number);
        }
        if connection.is_http2() {
            connection.streams.borrow_mut().push(peer.timer.clone());
            let phase = Phase::Service { reading: false };
            connection.enter(phase, peer.thread.ticks.get());
        }
        peer.reading(false);
        Self(peer)
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.0
    }

    /// The client has just taken data; a ready part of the reply waits for it again.
    pub(crate) fn progressed(&self) {
        self.enter(Phase::Replying);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.0.enter(phase);
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        let connection = &self.0.connection;
        connection.in_service.set(connection.in_service.get() - 1);
        let mut streams = connection.streams.borrow_mut();
        streams.retain(|timer| !Rc::ptr_eq(timer, &self.0.timer));
        if connection.in_service.get() == 0 {
            connection.enter(Phase::Idle, self.0.thread.ticks.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_a_connection_rests_keeps_it_from_resting_later() {
        let connection = Connection::new(-1, 0);
        connection.rest();
        assert!(connection.may_rest());
        connection.received(3);
        connection.enter(Phase::Idle, 3);
        assert!(!connection.may_rest());
    }
}

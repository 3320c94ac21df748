//! One connection: who is at its other end, and which phase it is in since when.
//!
//! The phase and the tick at which it began are two cells ([`Timer`]); the thread's sweep reads them. Nothing is
//! armed or disarmed per request, which is why this is used and not hyper's own timer. With HTTP/2 each
//! stream has a pair of its own: what one of them does must not hide that another stands still.

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

/// Sweeps without a request after which a connection rests.
const RESTS_AFTER: u32 = 2;

/// Sweeps after which half a request, or a reply without another request, counts as unused.
const UNUSED_AFTER: u32 = 1;

/// What answers a PING of HTTP/2 (RFC 9113, section 6.7): less than a reply's progress.
const PONG: usize = 17;

/// Who sent a request, and the connection it came on.
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The connection's number on this thread, from 0.
    pub number: u64,
    /// For the handler to keep something with the connection; 0 at first.
    pub note: Rc<Cell<u64>>,
    pub(crate) ip: OnceCell<HeaderValue>,
    pub(crate) connection: Rc<Connection>,
    pub(crate) thread: Rc<Thread>,
    /// The connection's, or that of one of its streams.
    pub(crate) timer: Rc<Timer>,
}

impl Peer {
    /// Its IP address as a field's value, written once for all requests of the connection.
    pub fn ip(&self) -> &HeaderValue {
        self.ip.get_or_init(|| {
            let text = self.address.ip().to_string();
            // An address is a value; RFC 7239, section 6, has this name for one that could not be told.
            HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("unknown"))
        })
    }

    /// Starts or ends the time in which a request's body must arrive, for handlers that read it themselves.
    pub fn reading(&self, reading: bool) {
        self.enter(Phase::Service { reading });
    }

    /// This peer, for one stream of its HTTP/2 connection.
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

    /// Closes a connection that nobody uses, of those of this thread, where an answer needs a descriptor and there is
    /// none; false where each is in use.
    pub async fn make_room(&self) -> bool {
        make_room(&self.thread, false).await
    }

    fn enter(&self, phase: Phase) {
        self.timer.enter(phase, self.thread.ticks.get());
    }

    /// What the kernel knows of the way there; none once the connection is over.
    pub fn path(&self) -> Option<NetworkPath> {
        network_path::ask(self.connection.socket.get()?)
    }
}

/// What the sweep knows of a connection.
pub(crate) struct Connection {
    pub(crate) timer: Rc<Timer>,
    /// The tick at which it was accepted.
    accepted: u32,
    /// A complete request of it has come.
    has_asked: Cell<bool>,
    /// Of HTTP/2 streams in service.
    streams: RefCell<Vec<Rc<Timer>>>,
    /// While something waits to be written: the tick at which the peer last took some of it.
    blocked: Cell<Option<u32>>,
    /// While it is idle: bytes that the peer had not acknowledged when that was last looked at.
    left: Cell<u32>,
    over: Cell<bool>,
    /// Whether it is to rest, or does.
    resting: Cell<bool>,
    http2: Cell<bool>,
    /// Whether its last request had a body, of which some may not have been read.
    had_body: Cell<bool>,
    /// Whether some of its last request's body has not been read.
    body_left: Cell<bool>,
    /// Of HTTP/1: requests that have come.
    requests: Cell<u64>,
    /// Of HTTP/1: the request with that number, the last, is not to be served.
    rejected: Cell<Option<(u64, Rejection)>>,
    pub(crate) marking: Marking,
    /// While there is one.
    socket: Cell<Option<RawFd>>,
    /// Requests that the handler has: several at a time with HTTP/2.
    in_service: Cell<u32>,
    waker: RefCell<Option<Waker>>,
}

/// A phase, and the tick at which it began or last got on.
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
    /// The handler has it; `reading` while it waits for the body.
    Service { reading: bool },
    /// A piece of the reply was handed over; nobody has asked for the next one yet.
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

    /// Ends the connection if it has been in its phase for too long; has it rest if it is idle.
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
            // While it writes, nothing else is late.
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
                    // The kernel has its reply, and the peer has not yet.
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

    /// True if it has sent no complete request and may be closed to make room for another.
    pub(crate) fn is_silent(&self, now: u32) -> bool {
        let (phase, _) = self.timer.get();
        let is_waiting = phase == Phase::Idle || is_old(self.accepted, now);
        !self.has_asked.get() && is_waiting && self.is_quiet()
    }

    /// The tick since which it waits for another request, if it may be closed to make room for another.
    pub(crate) fn idle_since(&self, now: u32) -> Option<u32> {
        let (phase, since) = self.timer.get();
        let is_idle = self.has_asked.get() && phase == Phase::Idle && is_old(since, now);
        (is_idle && self.is_quiet()).then_some(since)
    }

    /// True if nothing is on its way: the peer has received all that was sent to it, and nothing of it waits to be read.
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

    /// Whether it is to rest now: a request that has begun meanwhile comes first.
    pub(crate) fn may_rest(&self) -> bool {
        self.resting.get() && self.timer.phase.get() == Phase::Idle
    }

    /// It rests no more, or not yet.
    pub(crate) fn wake_up(&self) {
        self.resting.set(false);
    }

    /// It speaks HTTP from now on, of this version.
    pub(crate) fn begin(&self, http2: bool, now: u32) {
        self.http2.set(http2);
        // What it was before its handshake does not count: its first request may have come with that.
        self.resting.set(false);
        self.enter(Phase::Idle, now);
    }

    /// Its socket, while there is one.
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

    /// A request has come, with or without a body.
    pub(crate) fn has_body(&self, has: bool) {
        self.had_body.set(has);
        self.body_left.set(has);
    }

    /// The last request's body has been read to its end.
    pub(crate) fn has_read_body(&self) {
        self.body_left.set(false);
    }

    /// Whether some of the last request's body is still to be read.
    pub(crate) fn has_body_left(&self) -> bool {
        self.body_left.get()
    }

    /// The head of request `number`, from 1, is refused: no byte behind it is read.
    pub(crate) fn reject(&self, number: u64, rejection: Rejection) {
        self.rejected.set(Some((number, rejection)));
    }

    /// Counts a request of HTTP/1. Why it is not to be served, if it is not.
    pub(crate) fn next_request(&self) -> Result<(), Rejection> {
        self.requests.set(self.requests.get() + 1);
        match self.rejected.get() {
            Some((number, rejection)) if number == self.requests.get() => Err(rejection),
            _ => Ok(()),
        }
    }

    /// Whether the last request had a body.
    pub(crate) fn had_body(&self) -> bool {
        self.had_body.get()
    }

    /// All that is to be sent has been, and the peer is waited for.
    pub(crate) fn lingers(&self, now: u32) {
        self.enter(Phase::Idle, now);
    }

    /// Bytes have come: of a request, if it waited for one. With HTTP/2 there are frames between
    /// requests, and an idle connection has its own limit.
    pub(crate) fn received(&self, now: u32) {
        self.resting.set(false);
        if !self.http2.get() && self.timer.phase.get() == Phase::Idle {
            self.enter(Phase::Head, now);
        }
    }

    /// The peer took `taken` bytes of what was offered, or none at all. With HTTP/2 a reply has often
    /// been handed over long before the peer has taken it: while it goes on taking, nothing is late.
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

    /// There is no socket any more; whether it was ended rather than finished.
    pub(crate) fn closed(&self) -> bool {
        self.socket.set(None);
        self.over.get()
    }

    /// Whether it is to be closed at once.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Keeps whom [`Connection::wake`] wakes.
    pub(crate) fn wakes(&self, waker: &Waker) {
        if self.waker.borrow().is_none() {
            *self.waker.borrow_mut() = Some(waker.clone());
        }
    }

    /// Has the connection closed at its next poll, whatever it is doing.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.wake();
    }

    /// Has the connection polled, so that it sees what has changed.
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

/// A request in service: from its head to the last of its reply, or to a client that wants it no more
/// (HTTP/2 drops a stream and keeps its connection).
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

    /// What is ready of the reply waits for the client, who has just taken something.
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

//! The state of one connection: its phase, and its part of the connection limits.
//!
//! Each stream of HTTP/2 and HTTP/3 has a timer of its own, so that activity of one stream does not hide that another
//! is stalled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::task::Waker;

use crate::connection::clock::in_ticks;
use crate::connection::interim::InterimReplies;
use crate::connection::timer::{ConnectionPhase, PhaseTimer};
use crate::counters::{ConnectionCounters, add_one};
use crate::framing::Reset;
use crate::framing::check::Rejection;
use crate::options::Timeouts;
use crate::socket::handle::SocketHandle;
use crate::socket::mark::SocketMark;

/// Ticks without a request before a connection sheds its buffers.
const SHEDS_AFTER: u32 = 2;

/// Ticks after which an incomplete request, or an idle connection after a reply, counts as unused.
const UNUSED_AFTER: u32 = 1;

/// Size of the answer to an HTTP/2 PING (RFC 9113, section 6.7). It does not count as progress of a reply.
const PONG: usize = 17;

/// The state of a connection for the sweep.
pub(crate) struct ConnectionState {
    pub(crate) timer: Rc<PhaseTimer>,
    /// Tick of the accept.
    accepted: u32,
    /// A complete request has arrived.
    has_sent_request: Cell<bool>,
    /// Timers of HTTP/2 or HTTP/3 streams in service.
    streams: RefCell<Vec<Rc<PhaseTimer>>>,
    /// Set while data waits to be written: the tick of the peer's last progress.
    blocked: Cell<Option<u32>>,
    /// While idle: the bytes not acknowledged by the peer at the last sweep.
    left: Cell<u32>,
    over: Cell<bool>,
    /// The connection has ended with nothing missing, and closes without a reset.
    is_complete: Cell<bool>,
    /// The connection is to shed its buffers, or has done so.
    sheds: Cell<bool>,
    /// The connection has HTTP/2 or HTTP/3: several requests at once, each with a stream.
    multiplexed: Cell<bool>,
    /// The last request had a body, possibly unread in part.
    had_body: Cell<bool>,
    /// The last request's body is not completely read.
    body_left: Cell<bool>,
    /// Number of requests received; of HTTP/2 those that the decoder has accepted.
    requests: Cell<u64>,
    /// HTTP/2: requests that the decoder has refused, and that the handler has not observed yet.
    refused: RefCell<Vec<Reset>>,
    /// HTTP/2: requests that had begun at the last of them.
    opened: Cell<u64>,
    /// The end of the peer's data does not end its request.
    holds_end: Cell<bool>,
    /// The last request gets no reply, and the connection closes.
    is_unanswered: Cell<bool>,
    pub(crate) interim: InterimReplies,
    /// HTTP/1: the number of the request to reject, always the last.
    rejected: Cell<Option<(u64, Rejection)>>,
    pub(crate) mark: SocketMark,
    /// QUIC connections have none of their own.
    socket: Option<SocketHandle>,
    /// The socket is closed.
    is_closed: Cell<bool>,
    /// Requests at the handler; several at a time with HTTP/2 and HTTP/3.
    in_service: Cell<u32>,
    waker: RefCell<Option<Waker>>,
}

/// True if enough ticks have passed since that one.
fn is_old(since: u32, now: u32) -> bool {
    lasted(since, now) >= UNUSED_AFTER
}

fn lasted(since: u32, now: u32) -> u32 {
    debug_assert!(since <= now, "tick {since} is later than now, {now}");
    now.saturating_sub(since)
}

/// The reason to end a connection whose request or reply makes no progress.
fn overdue_exchange<'a>(
    timer: &PhaseTimer,
    now: u32,
    limits: &Timeouts,
    counters: &'a ConnectionCounters,
) -> Option<&'a AtomicU64> {
    let (phase, since) = timer.get();
    let (limit, counter) = match phase {
        ConnectionPhase::Replying => (limits.write, &counters.timed_out_writing),
        ConnectionPhase::Service { reading: true } => (limits.body, &counters.timed_out_reading),
        _ => return None,
    };
    (lasted(since, now) > in_ticks(limit)).then_some(counter)
}

impl ConnectionState {
    pub(crate) fn new(socket: SocketHandle, now: u32) -> Self {
        Self::with(Some(socket), now)
    }

    /// A connection of QUIC, which shares its socket with all others.
    #[cfg(feature = "http3")]
    pub(crate) fn without_socket(now: u32) -> Self {
        Self::with(None, now)
    }

    fn with(socket: Option<SocketHandle>, now: u32) -> Self {
        let timer = PhaseTimer::default();
        timer.enter(ConnectionPhase::Idle, now);
        Self {
            timer: Rc::new(timer),
            accepted: now,
            has_sent_request: Cell::new(false),
            streams: RefCell::default(),
            blocked: Cell::new(None),
            left: Cell::new(u32::MAX),
            over: Cell::new(false),
            is_complete: Cell::new(false),
            sheds: Cell::new(false),
            multiplexed: Cell::new(false),
            had_body: Cell::new(false),
            body_left: Cell::new(false),
            requests: Cell::new(0),
            refused: RefCell::default(),
            opened: Cell::new(0),
            holds_end: Cell::new(false),
            is_unanswered: Cell::new(false),
            interim: InterimReplies::default(),
            rejected: Cell::new(None),
            mark: SocketMark::default(),
            socket,
            is_closed: Cell::new(false),
            in_service: Cell::new(0),
            waker: RefCell::new(None),
        }
    }

    /// Enforces the timeouts: ends an overdue connection and sheds the buffers of an idle one.
    pub(crate) fn enforce_timeouts(
        &self,
        now: u32,
        limits: &Timeouts,
        counters: &ConnectionCounters,
    ) {
        if self.over.get() {
            return;
        }
        let (phase, since) = self.timer.get();
        let passed = |since: u32, limit| lasted(since, now) > in_ticks(limit);
        let overdue = match (self.blocked.get(), phase) {
            (Some(since), _) => {
                // During a write no other limit applies.
                passed(since, limits.write).then_some(&counters.timed_out_writing)
            }
            (None, ConnectionPhase::Replying | ConnectionPhase::Service { .. }) => {
                let late = |timer: &PhaseTimer| overdue_exchange(timer, now, limits, counters);
                let late_stream = || self.streams.borrow().iter().find_map(|timer| late(timer));
                late(&self.timer).or_else(late_stream)
            }
            (None, ConnectionPhase::Tunnel) => None,
            (None, ConnectionPhase::Idle) if passed(since, limits.idle) => {
                self.overdue_idle(passed(since, limits.write), now, counters)
            }
            (None, ConnectionPhase::Head) => {
                passed(since, limits.head).then_some(&counters.timed_out_reading)
            }
            (None, ConnectionPhase::Idle) => {
                if lasted(since, now) >= SHEDS_AFTER && !self.multiplexed.get() {
                    self.shed_buffers();
                }
                None
            }
        };
        if let Some(counter) = overdue {
            add_one(counter);
            if std::ptr::eq(counter, &counters.timed_out_idle) {
                self.end_unused();
            } else {
                self.end();
            }
        }
    }

    /// The reason to end a connection that has been idle for too long. None while the kernel holds a reply and the peer
    /// is still receiving it.
    fn overdue_idle<'a>(
        &self,
        is_stalled: bool,
        now: u32,
        counters: &'a ConnectionCounters,
    ) -> Option<&'a AtomicU64> {
        let left = self.unacknowledged();
        if left < self.left.replace(left) && left > 0 {
            self.timer.restart(now);
            None
        } else if left == 0 {
            Some(&counters.timed_out_idle)
        } else {
            is_stalled.then_some(&counters.timed_out_writing)
        }
    }

    /// True if no complete request has arrived and the connection may be closed in favour of another.
    pub(crate) fn is_silent(&self, now: u32) -> bool {
        let (phase, _) = self.timer.get();
        let is_waiting = phase == ConnectionPhase::Idle || is_old(self.accepted, now);
        !self.has_sent_request.get() && is_waiting && self.is_quiet()
    }

    /// True after a complete request.
    pub(crate) fn has_sent_request(&self) -> bool {
        self.has_sent_request.get()
    }

    /// The tick since when it waits for another request, if it may be closed in favour of another.
    pub(crate) fn idle_since(&self, now: u32) -> Option<u32> {
        let (phase, since) = self.timer.get();
        let is_idle =
            self.has_sent_request.get() && phase == ConnectionPhase::Idle && is_old(since, now);
        (is_idle && self.is_quiet()).then_some(since)
    }

    /// True if no data is in transit: the peer has acknowledged everything, and no received data is unread.
    fn is_quiet(&self) -> bool {
        let is_quiet = |socket: &SocketHandle| socket.unread() == 0 && socket.unacknowledged() == 0;
        // Without a socket, the end of the connection frees no descriptor.
        let is_usable = self.socket.is_some() && !self.over.get() && self.blocked.get().is_none();
        is_usable && self.socket().is_none_or(is_quiet)
    }

    fn shed_buffers(&self) {
        if !self.sheds.replace(true) {
            self.wake();
        }
    }

    /// True if the buffers may be shed now. A request that has begun takes precedence.
    pub(crate) fn may_shed_buffers(&self) -> bool {
        self.sheds.get() && self.timer.phase() == ConnectionPhase::Idle
    }

    /// Cancels or ends the shedding of the buffers.
    pub(crate) fn keep_buffers(&self) {
        self.sheds.set(false);
    }

    /// HTTP begins; `is_multiplexed` states HTTP/2 or HTTP/3.
    pub(crate) fn begin_http(&self, is_multiplexed: bool, now: u32) {
        self.multiplexed.set(is_multiplexed);
        // Earlier idle time does not count: the first request may have arrived with the end of the handshake.
        self.sheds.set(false);
        self.enter(ConnectionPhase::Idle, now);
    }

    /// The socket, until it is closed.
    pub(crate) fn socket(&self) -> Option<&SocketHandle> {
        self.socket.as_ref().filter(|_| !self.is_closed.get())
    }

    /// Bytes written and not acknowledged by the peer.
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.socket().map_or(0, SocketHandle::unacknowledged)
    }

    /// True for HTTP/2 and HTTP/3.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.multiplexed.get()
    }

    /// The header of the PROXY protocol is awaited.
    pub(crate) fn begin_proxy_header(&self, now: u32) {
        self.enter(ConnectionPhase::Head, now);
    }

    /// The header of the PROXY protocol has been read; the client's first byte is awaited.
    pub(crate) fn end_proxy_header(&self, now: u32) {
        self.enter(ConnectionPhase::Idle, now);
    }

    /// The TLS handshake has begun.
    pub(crate) fn begin_handshake(&self, now: u32) {
        self.enter(ConnectionPhase::Head, now);
    }

    /// A request has arrived, with or without a body.
    pub(crate) fn set_body(&self, has: bool) {
        self.had_body.set(has);
        self.body_left.set(has);
    }

    /// The last request's body has been read completely.
    pub(crate) fn finish_body(&self) {
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

    /// Counts a request of HTTP/2.
    pub(crate) fn next_stream(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// HTTP/2: the decoder has refused a request, or the rest of one; `opened` requests have begun.
    pub(crate) fn refused_stream(&self, reset: Reset, opened: u64) {
        self.opened.set(opened);
        self.refused.borrow_mut().push(reset);
    }

    /// Takes the refused requests of HTTP/2, when all accepted ones are at the service. The service observes the end of
    /// those that it got. They count as received.
    pub(crate) fn take_refused(&self) -> Vec<Reset> {
        let mut refused = self.refused.take();
        if refused.is_empty() {
            return refused;
        }
        let requests = self.requests.get();
        let unserved = self.opened.get().saturating_sub(requests);
        refused.sort();
        refused.truncate(usize::try_from(unserved).unwrap_or(usize::MAX));
        self.requests.set(requests + refused.len() as u64);
        refused
    }

    /// True before a second request.
    pub(crate) fn is_first_request(&self) -> bool {
        self.requests.get() <= 1
    }

    /// Holds back the end of the peer's data, or releases it.
    pub(crate) fn hold_end(&self, holds: bool) {
        self.holds_end.set(holds);
    }

    pub(crate) fn holds_end(&self) -> bool {
        self.holds_end.get()
    }

    /// Makes the connection close in order, without a reply to its request.
    pub(crate) fn close_unanswered(&self) {
        self.is_unanswered.set(true);
        self.wake();
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_unanswered.get()
    }

    /// True if the last request had a body.
    pub(crate) fn had_body(&self) -> bool {
        self.had_body.get()
    }

    /// The connection carries another protocol from now on.
    pub(crate) fn begin_tunnel(&self, now: u32) {
        self.enter(ConnectionPhase::Tunnel, now);
    }

    /// True while written data waits for the peer.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.get().is_some()
    }

    /// All data has been sent; the peer's close is awaited.
    pub(crate) fn begin_linger(&self, now: u32) {
        self.enter(ConnectionPhase::Idle, now);
    }

    /// Data has arrived. In HTTP/1, an idle connection enters the head phase. HTTP/2 has frames between requests, and
    /// an idle connection has its own limit.
    pub(crate) fn received(&self, now: u32) {
        self.sheds.set(false);
        if !self.multiplexed.get() && self.timer.phase() == ConnectionPhase::Idle {
            self.enter(ConnectionPhase::Head, now);
        }
    }

    /// Records a write: the peer took `taken` of `offered` bytes. HTTP/2 often hands over a reply long before the peer
    /// has taken it, so progress restarts the timers of idle and replying streams.
    pub(crate) fn wrote(&self, offered: usize, taken: usize, now: u32) {
        debug_assert!(taken <= offered, "{taken} of {offered} bytes were written");
        if taken == offered {
            self.blocked.set(None);
        } else if taken > 0 || self.blocked.get().is_none() {
            self.blocked.set(Some(now));
        }
        if taken > PONG {
            let streams = self.streams.borrow();
            let timers = std::iter::once(&self.timer).chain(&*streams);
            timers
                .filter(|timer| {
                    matches!(
                        timer.phase(),
                        ConnectionPhase::Idle | ConnectionPhase::Replying
                    )
                })
                .for_each(|timer| timer.restart(now));
        }
    }

    /// Records that the socket is closed. Returns true if the connection was ended rather than finished.
    pub(crate) fn closed(&self) -> bool {
        self.is_closed.set(true);
        self.over.get() && !self.is_complete.get()
    }

    /// True if at least one request is in service.
    #[cfg(feature = "http3")]
    pub(crate) fn is_serving(&self) -> bool {
        self.in_service.get() > 0
    }

    /// True if the connection must close at once.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Stores the waker for [`ConnectionState::wake`].
    pub(crate) fn set_waker(&self, waker: &Waker) {
        if self.waker.borrow().is_none() {
            *self.waker.borrow_mut() = Some(waker.clone());
        }
    }

    /// Makes the connection close at its next poll, in any phase.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.wake();
    }

    /// Makes the connection close as [`ConnectionState::end`], between requests: the peer has everything.
    pub(crate) fn end_unused(&self) {
        self.is_complete.set(true);
        self.end();
    }

    /// Wakes the connection's task, so that it sees changes.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Counts a request in service, with the timer of its stream. Returns true for the connection's first request.
    pub(crate) fn begin_request(&self, timer: &Rc<PhaseTimer>, now: u32) -> bool {
        let in_service = self.in_service.get() + 1;
        self.in_service.set(in_service);
        if self.is_multiplexed() {
            let mut streams = self.streams.borrow_mut();
            streams.push(timer.clone());
            debug_assert_eq!(
                streams.len(),
                in_service as usize,
                "each stream has a timer"
            );
            self.enter(ConnectionPhase::Service { reading: false }, now);
        } else {
            debug_assert_eq!(in_service, 1, "HTTP/1 serves one request at a time");
        }
        !self.has_sent_request.replace(true)
    }

    /// Counts the end of a request in service.
    pub(crate) fn end_request(&self, timer: &Rc<PhaseTimer>, now: u32) {
        debug_assert!(self.in_service.get() > 0, "a request ends once");
        self.in_service.set(self.in_service.get() - 1);
        let mut streams = self.streams.borrow_mut();
        streams.retain(|other| !Rc::ptr_eq(other, timer));
        debug_assert!(
            !self.is_multiplexed() || streams.len() == self.in_service.get() as usize,
            "the timer of each stream is removed with it"
        );
        if self.in_service.get() == 0 {
            self.enter(ConnectionPhase::Idle, now);
        }
    }

    fn enter(&self, phase: ConnectionPhase, now: u32) {
        self.timer.enter(phase, now);
        self.left.set(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_data_cancels_the_shedding_of_buffers() {
        let connection = ConnectionState::new(SocketHandle::Kernel(-1), 0);
        connection.shed_buffers();
        assert!(connection.may_shed_buffers());
        connection.received(3);
        connection.enter(ConnectionPhase::Idle, 3);
        assert!(!connection.may_shed_buffers());
    }
}

//! The state of one connection: its phase, and its part of the connection limits.
//!
//! Each stream of HTTP/2 and HTTP/3 has a timer of its own, so that activity of one stream does not hide that another
//! is stalled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use crate::connection::clock::in_ticks;
use crate::connection::ending::ConnectionEnding;
use crate::connection::interim::InterimReplies;
use crate::connection::requests::ReceivedRequests;
use crate::connection::timer::{ConnectionPhase, PhaseTimer};
use crate::counters::{ConnectionCounters, add_one};
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
    /// The connection is to shed its buffers, or has done so.
    sheds: Cell<bool>,
    /// The connection has HTTP/2 or HTTP/3: several requests at once, each with a stream.
    multiplexed: Cell<bool>,
    pub(crate) requests: ReceivedRequests,
    pub(crate) interim: InterimReplies,
    pub(crate) ending: ConnectionEnding,
    pub(crate) mark: SocketMark,
    /// QUIC connections have none of their own.
    socket: Option<SocketHandle>,
    /// The socket is closed.
    is_closed: Cell<bool>,
    /// Requests at the handler; several at a time with HTTP/2 and HTTP/3.
    in_service: Cell<u32>,
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
            sheds: Cell::new(false),
            multiplexed: Cell::new(false),
            requests: ReceivedRequests::default(),
            interim: InterimReplies::default(),
            ending: ConnectionEnding::default(),
            mark: SocketMark::default(),
            socket,
            is_closed: Cell::new(false),
            in_service: Cell::new(0),
        }
    }

    /// Enforces the timeouts: ends an overdue connection and sheds the buffers of an idle one.
    pub(crate) fn enforce_timeouts(
        &self,
        now: u32,
        limits: &Timeouts,
        counters: &ConnectionCounters,
    ) {
        if self.ending.is_over() {
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
                self.ending.end_unused();
            } else {
                self.ending.end();
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
        let is_usable =
            self.socket.is_some() && !self.ending.is_over() && self.blocked.get().is_none();
        is_usable && self.socket().is_none_or(is_quiet)
    }

    fn shed_buffers(&self) {
        if !self.sheds.replace(true) {
            self.ending.wake();
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
        self.ending.is_cut()
    }

    /// True if at least one request is in service.
    #[cfg(feature = "http3")]
    pub(crate) fn is_serving(&self) -> bool {
        self.in_service.get() > 0
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

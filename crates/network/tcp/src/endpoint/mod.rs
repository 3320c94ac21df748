//! One end of a connection: a state machine in sequence space.
//!
//! The contract: [`push`](Endpoint::push) takes segments, [`pop`](Endpoint::pop) returns segments, and
//! [`wake`](Endpoint::wake) returns the time of the next call. Within one instant: push, pop until none, let the
//! application read and write, pop until none again. A stack acknowledges before the reader wakes, and this order
//! decides FreeBSD's window updates.
//!
//! Times of calls may decrease slightly. An emulator takes some of them from the stamps of packets and others from its
//! clock. Ages are therefore never negative, by `saturating_since`.
//!
//! This file holds the public interface. `open` handles connection setup, `arrive` incoming segments, `leave` outgoing
//! ones. `send` and `receive` hold the two directions.

mod answer;
mod arrive;
mod leave;
mod open;

use std::ops::Range;
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use crate::receive::Receiver;
use crate::send::{Agreed, BoardCounts, RecoveryPhase, Sender};
use crate::{ConnectionEnd, EndpointCounters, Offset, Profile, Segment, TcpState};
use answer::Challenges;
use open::Opening;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    profile: Arc<Profile>,
    state: TcpState,
    isn: u32,
    peer_isn: Option<u32>,
    opening: Opening,
    sender: Sender,
    receiver: Receiver,
    /// Shift of the windows that the peer advertises.
    peer_scale: u8,
    /// Both ends scale their windows.
    opening_scaled: bool,
    agreed: Agreed,
    timestamps: bool,
    /// The timestamp to echo, and its time of arrival (`ts_recent`).
    recent: Option<(u32, Instant)>,
    /// End of TIME-WAIT, or of the time limit in FIN-WAIT-2.
    linger: Instant,
    /// The application no longer reads.
    left: bool,
    /// Sent before everything else: the last segment of a connection, or the answer to a segment without one.
    reset: Option<Segment>,
    /// Duplicate acknowledgements that a remedy still has to send.
    repeats: u32,
    challenges: Challenges,
    /// True if something may be sent at once. Otherwise `due` is the earliest timer.
    stirred: bool,
    due: Instant,
    counters: EndpointCounters,
}

/// Snapshot of the sender's state, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSnapshot {
    /// Congestion window in bytes.
    pub window: u64,
    /// Slow-start threshold in bytes.
    pub threshold: u64,
    /// The peer's window in bytes.
    pub peer_window: u64,
    /// Bytes in flight, as the profile counts them.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub smoothed: Option<Span>,
    /// Retransmission timeout, including back-off.
    pub timeout: Span,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Phase of loss recovery.
    pub phase: RecoveryPhase,
    /// Duplicates that prove a loss. Grows with observed reordering on Linux.
    pub reordering: u32,
    /// Segments that are sent and not acknowledged.
    pub board: BoardCounts,
}

impl Endpoint {
    /// Opens a connection. The SYN is ready to be popped.
    pub fn connect(profile: &Arc<Profile>, isn: u32, now: Instant) -> Self {
        let mut endpoint = Self::new(profile, isn);
        endpoint.begin(TcpState::SynSent, now);
        endpoint
    }

    /// Waits for a SYN.
    pub fn listen(profile: &Arc<Profile>, isn: u32) -> Self {
        Self::new(profile, isn)
    }

    fn new(profile: &Arc<Profile>, isn: u32) -> Self {
        Self {
            state: TcpState::Listen,
            isn,
            peer_isn: None,
            opening: Opening::default(),
            sender: Sender::new(profile),
            receiver: Receiver::new(profile),
            peer_scale: 0,
            opening_scaled: false,
            agreed: Agreed::default(),
            timestamps: false,
            recent: None,
            linger: Instant::FAR_FUTURE,
            left: false,
            reset: None,
            repeats: 0,
            challenges: Challenges::default(),
            stirred: false,
            due: Instant::FAR_FUTURE,
            counters: EndpointCounters::default(),
            profile: profile.clone(),
        }
    }

    fn begin(&mut self, state: TcpState, now: Instant) {
        self.state = state;
        self.opening.began = now;
        self.opening.send = state == TcpState::SynSent;
        self.stirred = true;
    }

    /// Restarts as [`connect`](Self::connect) does, reusing the allocated memory.
    pub fn reconnect(&mut self, profile: &Arc<Profile>, isn: u32, now: Instant) {
        self.relisten(profile, isn);
        self.begin(TcpState::SynSent, now);
    }

    /// Restarts as [`listen`](Self::listen) does, reusing the allocated memory.
    pub fn relisten(&mut self, profile: &Arc<Profile>, isn: u32) {
        if !Arc::ptr_eq(&self.profile, profile) {
            self.profile = profile.clone();
        }
        self.sender.reset(profile);
        self.receiver.reset(profile);
        self.state = TcpState::Listen;
        self.isn = isn;
        self.peer_isn = None;
        self.opening = Opening::default();
        self.peer_scale = 0;
        self.opening_scaled = false;
        self.agreed = Agreed::default();
        self.timestamps = false;
        self.recent = None;
        self.linger = Instant::FAR_FUTURE;
        self.left = false;
        self.reset = None;
        self.repeats = 0;
        self.challenges = Challenges::default();
        self.stirred = false;
        self.due = Instant::FAR_FUTURE;
        self.counters = EndpointCounters::default();
    }

    /// Processes an arriving segment. Returns the offsets of the accepted data (in order or not), trimmed to the
    /// window. None if the segment has no new data or was refused.
    pub fn push(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        self.counters.segments_in += 1;
        let mut taken = None;
        match self.state {
            TcpState::Closed(_) => self.arrive_nowhere(segment),
            TcpState::Listen => self.arrive_in_listen(now, segment),
            TcpState::SynSent => self.arrive_in_syn_sent(now, segment),
            _ => taken = self.arrive(now, segment),
        }
        self.settle(true);
        taken
    }

    /// Returns true if a pop at `now` may return or change anything. Most of the time it does not.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.stirred || self.due <= now
    }

    /// Handles timers that are due, then returns the next segment to send at `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Segment> {
        if !self.is_due(now) {
            return None;
        }
        let mut segment = self.by_now(now);
        if segment.is_none() && self.due <= now {
            segment = self.by_now(now);
        }
        debug_assert!(
            segment.is_some() || self.stirred || self.due > now,
            "a timer that is due has no effect"
        );
        self.counters.segments_out += u64::from(segment.is_some());
        segment
    }

    fn by_now(&mut self, now: Instant) -> Option<Segment> {
        if self.due <= now {
            self.expire(now);
        }
        let segment = self.next_segment(now);
        self.settle(segment.is_some());
        segment
    }

    /// Updates the state that `pop` checks. Called after every push and pop; `news` is false only after a pop that
    /// returned nothing.
    #[inline]
    fn settle(&mut self, news: bool) {
        self.stirred = news && self.may_send();
        if !self.stirred {
            self.due = self.next_due();
        }
        self.assert_invariants();
    }

    /// Panics if the state contradicts itself. Called after each transition, checked in debug builds.
    fn assert_invariants(&self) {
        if cfg!(debug_assertions) {
            self.sender.assert_invariants();
            self.receiver.assert_invariants();
            let knows_peer = self.peer_isn.is_some() || !self.state.is_synchronised();
            assert!(knows_peer, "{:?} without the peer's SYN", self.state);
            let ends = self.linger < Instant::FAR_FUTURE || self.state != TcpState::TimeWait;
            assert!(ends, "TIME-WAIT without an end");
            let silent = !self.opening.send || !self.state.is_closed();
            assert!(silent, "a closed connection sends a SYN");
            let EndpointCounters {
                retransmissions,
                fast,
                after_timeout,
                probes,
                ..
            } = self.counters;
            let by_reason = fast + after_timeout + probes;
            assert_eq!(
                retransmissions, by_reason,
                "retransmissions differ from their reasons"
            );
        }
    }

    /// Returns true if something may be sent at once. Most of the time nothing may.
    fn may_send(&self) -> bool {
        let speaks = self.sender.may_send() || self.receiver.owed_now || self.repeats > 0;
        (speaks && self.state.is_synchronised()) || self.opening.send || self.reset.is_some()
    }

    /// Returns the time of the next pop: the earliest timer, or the origin of time if something may be sent at once.
    /// None if no timer is set.
    #[inline]
    pub fn wake(&self) -> Option<Instant> {
        let due = if self.stirred {
            Instant::ORIGIN
        } else {
            self.due
        };
        (due < Instant::FAR_FUTURE).then_some(due)
    }

    fn next_due(&self) -> Instant {
        if self.state.is_closed() {
            return Instant::FAR_FUTURE;
        }
        let opening = self.opening.due.min(self.linger);
        let open = self.sender.deadline().min(self.receiver.deadline());
        opening.min(open)
    }

    /// Writes application data. Returns the number of bytes that the send buffer accepted: none before a SYN was sent
    /// or received, and none after [`close`](Self::close).
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let open = matches!(
            self.state,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        );
        if !open || self.sender.sequence().closing {
            return 0;
        }
        let held = self
            .sender
            .sequence()
            .written
            .saturating_sub(self.sender.sequence().una.max(1));
        debug_assert!(
            held <= self.profile.send_buffer,
            "{held} bytes exceed the send buffer"
        );
        let bytes = bytes.min(self.profile.send_buffer.saturating_sub(held));
        if bytes > 0 {
            self.sender.write(now, bytes);
            self.stirred = true;
        }
        bytes
    }

    /// Bytes available to read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Reads application data. Returns the number of bytes read.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let readable = self.readable();
        let bytes = self.receiver.read(bytes);
        debug_assert_eq!(
            self.readable(),
            readable - bytes,
            "bytes are read twice or lost"
        );
        self.stirred |= self.receiver.owed_now;
        bytes
    }

    /// Ends the application's writing: a FIN follows the last byte. Data from the peer can still be read.
    pub fn close(&mut self) {
        if self.sender.sequence().closing || self.state.is_closed() {
            return;
        }
        self.stirred = true;
        match self.state {
            TcpState::Listen | TcpState::SynSent => self.finish(ConnectionEnd::Finished),
            TcpState::CloseWait => {
                self.sender.close();
                self.state = TcpState::LastAck;
            }
            TcpState::SynReceived => self.sender.close(),
            _ => {
                self.sender.close();
                self.state = TcpState::FinWait1;
            }
        }
    }

    /// Closes and detaches the application. Data from the peer is accepted and discarded. From FIN-WAIT-2 on the
    /// profile's time limit applies. Stacks have no such limit for a program that has only closed its own direction
    /// (Linux `tcp_close`, an orphan; BSD `SS_CANTRCVMORE`).
    pub fn leave(&mut self, now: Instant) {
        self.left = true;
        self.stirred = true;
        self.close();
        self.limit_patience(now);
    }

    /// Aborts the connection: sends a RST if the peer knows of the connection, and nothing after it.
    pub fn abort(&mut self) {
        if self.state.is_closed() {
            return;
        }
        if !matches!(
            self.state,
            TcpState::Listen | TcpState::SynSent | TcpState::TimeWait
        ) {
            self.reset = Some(self.bare_reset());
        }
        self.finish(ConnectionEnd::Aborted);
    }

    fn finish(&mut self, end: ConnectionEnd) {
        self.state = TcpState::Closed(end);
        self.opening = Opening::default();
        self.linger = Instant::FAR_FUTURE;
        self.repeats = 0;
        self.stirred = true;
    }

    /// Disables (TCP_NODELAY) or enables the delay of small segments.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.sender.set_no_delay(no_delay);
        self.stirred = true;
    }

    /// Connection state.
    pub const fn state(&self) -> TcpState {
        self.state
    }

    /// Returns true once the FIN has arrived in order. No data follows the readable bytes.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.has_closed()
    }

    /// Bytes of data that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender
            .sequence()
            .una
            .clamp(1, self.sender.sequence().written)
            - 1
    }

    /// Bytes of data received in order, read or not.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Counters of the endpoint.
    pub const fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    /// Initial sequence number of this end.
    pub const fn isn(&self) -> u32 {
        self.isn
    }

    /// Initial sequence number of the peer, once its SYN has arrived.
    pub const fn peer_isn(&self) -> Option<u32> {
        self.peer_isn
    }

    /// Profile of the endpoint.
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Returns a snapshot of the sender's state.
    pub fn look(&self) -> SenderSnapshot {
        SenderSnapshot {
            window: self.sender.congestion().window(),
            threshold: self.sender.congestion().threshold(),
            peer_window: self.sender.peer_window(),
            in_flight: self.sender.in_flight(),
            smoothed: self.sender.rtt().smoothed(),
            timeout: self.sender.timeout(),
            mss: self.sender.mss(),
            phase: self.sender.phase(),
            reordering: self.sender.reordering(),
            board: self.sender.board_counts(),
        }
    }
}

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
//! This file holds the public interface and the time of the next call. `connection` has the states and both directions.

use std::ops::Range;
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use crate::connection::Connection;
use crate::send::{BoardCounts, RecoveryPhase};
use crate::{EndpointCounters, Offset, Profile, Segment, TcpState};

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    connection: Connection,
    /// True if something may be sent at once. Otherwise `due` is the earliest timer.
    stirred: bool,
    due: Instant,
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
        endpoint.open(now);
        endpoint
    }

    /// Waits for a SYN.
    pub fn listen(profile: &Arc<Profile>, isn: u32) -> Self {
        Self::new(profile, isn)
    }

    fn new(profile: &Arc<Profile>, isn: u32) -> Self {
        Self {
            connection: Connection::new(profile, isn),
            stirred: false,
            due: Instant::FAR_FUTURE,
        }
    }

    const fn open(&mut self, now: Instant) {
        self.connection.open(now);
        self.stirred = true;
    }

    /// Restarts as [`connect`](Self::connect) does, reusing the allocated memory.
    pub fn reconnect(&mut self, profile: &Arc<Profile>, isn: u32, now: Instant) {
        self.relisten(profile, isn);
        self.open(now);
    }

    /// Restarts as [`listen`](Self::listen) does, reusing the allocated memory.
    pub fn relisten(&mut self, profile: &Arc<Profile>, isn: u32) {
        self.connection.restart(profile, isn);
        self.stirred = false;
        self.due = Instant::FAR_FUTURE;
    }

    /// Processes an arriving segment. Returns the offsets of the accepted data (in order or not), trimmed to the
    /// window. None if the segment has no new data or was refused.
    pub fn push(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        let accepted = self.connection.push(now, segment);
        self.settle(true);
        accepted
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
        self.connection.counters.segments_out += u64::from(segment.is_some());
        segment
    }

    fn by_now(&mut self, now: Instant) -> Option<Segment> {
        if self.due <= now {
            self.connection.expire(now);
        }
        let segment = self.connection.next_segment(now);
        self.settle(segment.is_some());
        segment
    }

    /// Updates the state that `pop` checks. Called after every push and pop; `news` is false only after a pop that
    /// returned nothing.
    #[inline]
    fn settle(&mut self, news: bool) {
        self.stirred = news && self.connection.may_send();
        if !self.stirred {
            self.due = self.connection.next_due();
        }
        self.connection.assert_invariants();
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

    /// Writes application data. Returns the number of bytes that the send buffer accepted: none before a SYN was sent
    /// or received, and none after [`close`](Self::close).
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let bytes = self.connection.write(now, bytes);
        self.stirred |= bytes > 0;
        bytes
    }

    /// Bytes available to read.
    pub fn readable(&self) -> u64 {
        self.connection.receiver.readable()
    }

    /// Reads application data. Returns the number of bytes read.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let readable = self.readable();
        let bytes = self.connection.receiver.read(bytes);
        debug_assert_eq!(
            self.readable(),
            readable - bytes,
            "bytes are read twice or lost"
        );
        self.stirred |= self.connection.receiver.owed_now;
        bytes
    }

    /// Ends the application's writing: a FIN follows the last byte. Data from the peer can still be read.
    pub fn close(&mut self) {
        if self.connection.sender.sequence().closing || self.state().is_closed() {
            return;
        }
        self.stirred = true;
        self.connection.close();
    }

    /// Closes and detaches the application. Data from the peer is accepted and discarded. From FIN-WAIT-2 on the
    /// profile's time limit applies. Stacks have no such limit for a program that has only closed its own direction
    /// (Linux `tcp_close`, an orphan; BSD `SS_CANTRCVMORE`).
    pub fn leave(&mut self, now: Instant) {
        self.stirred = true;
        self.close();
        self.connection.leave(now);
    }

    /// Aborts the connection: sends a RST if the peer knows of the connection, and nothing after it.
    pub fn abort(&mut self) {
        if self.state().is_closed() {
            return;
        }
        self.stirred = true;
        self.connection.abort();
    }

    /// Disables (TCP_NODELAY) or enables the delay of small segments.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.connection.sender.set_no_delay(no_delay);
        self.stirred = true;
    }

    /// Connection state.
    pub const fn state(&self) -> TcpState {
        self.connection.state
    }

    /// Returns true once the FIN has arrived in order. No data follows the readable bytes.
    pub fn peer_has_closed(&self) -> bool {
        self.connection.receiver.has_closed()
    }

    /// Bytes of data that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        let sequence = self.connection.sender.sequence();
        sequence.una.clamp(1, sequence.written) - 1
    }

    /// Bytes of data received in order, read or not.
    pub fn received(&self) -> u64 {
        self.connection.receiver.received()
    }

    /// Counters of the endpoint.
    pub const fn counters(&self) -> &EndpointCounters {
        &self.connection.counters
    }

    /// Initial sequence number of this end.
    pub const fn isn(&self) -> u32 {
        self.connection.negotiated.isn
    }

    /// Initial sequence number of the peer, once its SYN has arrived.
    pub const fn peer_isn(&self) -> Option<u32> {
        self.connection.negotiated.peer_isn
    }

    /// Profile of the endpoint.
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.connection.profile
    }

    /// Returns a snapshot of the sender's state.
    pub fn look(&self) -> SenderSnapshot {
        let sender = &self.connection.sender;
        SenderSnapshot {
            window: sender.congestion().window(),
            threshold: sender.congestion().threshold(),
            peer_window: sender.peer_window(),
            in_flight: sender.in_flight(),
            smoothed: sender.rtt().smoothed(),
            timeout: sender.timeout(),
            mss: sender.mss(),
            phase: sender.phase(),
            reordering: sender.reordering(),
            board: sender.board_counts(),
        }
    }
}

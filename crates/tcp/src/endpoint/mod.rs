//! One end of a connection: a state machine in sequence space.
//!
//! The contract: segments go in by [`push`](Endpoint::push), come out by [`pop`](Endpoint::pop),
//! and [`wake`](Endpoint::wake) says when to come back. Within one instant: push, pop until none,
//! let the application read and write, pop until none again. A stack acknowledges before the
//! reader wakes, and this order decides FreeBSD's window updates.

use std::ops::Range;
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use crate::{Counters, End, Offset, Profile, Segment, State};

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    profile: Arc<Profile>,
    state: State,
    isn: u32,
    counters: Counters,
}

/// What a sender knows, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Congestion window in bytes.
    pub window: u64,
    /// Slow-start threshold in bytes.
    pub threshold: u64,
    /// The peer's window in bytes.
    pub peer_window: u64,
    /// Bytes on their way, as the profile counts them.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub smoothed: Option<Span>,
    /// The retransmission timeout, back-off included.
    pub timeout: Span,
    /// Payload of a full segment.
    pub mss: u32,
}

impl Endpoint {
    /// An endpoint that opens a connection: its SYN is ready to be popped.
    pub fn connect(profile: &Arc<Profile>, isn: u32, now: Instant) -> Self {
        let _ = now;
        Self::new(profile, isn, State::SynSent)
    }

    /// An endpoint that takes the first SYN.
    pub fn listen(profile: &Arc<Profile>, isn: u32) -> Self {
        Self::new(profile, isn, State::Listen)
    }

    fn new(profile: &Arc<Profile>, isn: u32, state: State) -> Self {
        Self {
            profile: profile.clone(),
            state,
            isn,
            counters: Counters::default(),
        }
    }

    /// Begins anew as [`connect`](Self::connect) does, in the memory that is there.
    pub fn reconnect(&mut self, profile: &Arc<Profile>, isn: u32, now: Instant) {
        *self = Self::connect(profile, isn, now);
    }

    /// Begins anew as [`listen`](Self::listen) does, in the memory that is there.
    pub fn relisten(&mut self, profile: &Arc<Profile>, isn: u32) {
        *self = Self::listen(profile, isn);
    }

    /// A segment arrives; returns the places of its data that have been taken (in order or not),
    /// trimmed to the window; none where it brings nothing or was refused.
    pub fn push(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        let _ = (now, segment);
        None
    }

    /// Lets timers that are due run out, then the next segment to be sent at `now`.
    pub fn pop(&mut self, now: Instant) -> Option<Segment> {
        let _ = now;
        None
    }

    /// When to pop next: the earliest timer, or an instant that has passed where something can be
    /// sent at once; none while nothing will happen by itself.
    pub fn wake(&self) -> Option<Instant> {
        None
    }

    /// The application writes; returns how many bytes the send buffer took.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let _ = (now, bytes);
        0
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        0
    }

    /// The application reads; returns how many bytes there were.
    pub fn read(&mut self, now: Instant, bytes: u64) -> u64 {
        let _ = (now, bytes);
        0
    }

    /// The application has written everything: a FIN follows the last byte.
    pub fn close(&mut self, now: Instant) {
        let _ = now;
    }

    /// The application gives up: a RST, and nothing after it.
    pub fn abort(&mut self, now: Instant) {
        let _ = now;
        self.state = State::Closed(End::Aborted);
    }

    /// Small segments wait no more (TCP_NODELAY), or do again.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        let _ = no_delay;
    }

    /// Where the connection is in its life.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The FIN has come in order: there is nothing to be read behind what is readable.
    pub fn peer_has_closed(&self) -> bool {
        false
    }

    /// Bytes of data that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        0
    }

    /// Bytes of data that have come in order, read or not.
    pub fn received(&self) -> u64 {
        0
    }

    /// What it did and refused.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of its SYN.
    pub const fn isn(&self) -> u32 {
        self.isn
    }

    /// Number of the peer's SYN, once it has come.
    pub const fn peer_isn(&self) -> Option<u32> {
        None
    }

    /// The profile it runs by.
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// What its sender knows.
    pub fn look(&self) -> Look {
        Look {
            window: 0,
            threshold: 0,
            peer_window: 0,
            in_flight: 0,
            smoothed: None,
            timeout: Span::ZERO,
            mss: 0,
        }
    }
}

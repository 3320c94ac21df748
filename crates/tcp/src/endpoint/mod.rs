//! One end of a connection: a state machine in sequence space.
//!
//! The contract: segments go in by [`push`](Endpoint::push), come out by [`pop`](Endpoint::pop),
//! and [`wake`](Endpoint::wake) says when to come back. Within one instant: push, pop until none,
//! let the application read and write, pop until none again. A stack acknowledges before the
//! reader wakes, and this order decides FreeBSD's window updates.
//!
//! This file has the public face. How connections open is `open`'s, what arrives `arrive`'s, what
//! leaves `leave`'s; the two directions are `send` and `receive`.

mod answer;
mod arrive;
mod leave;
mod open;

use std::ops::Range;
use std::sync::Arc;

use posthaste_units::{Instant, Span};

use crate::receive::Receiver;
use crate::send::{Agreed, Sender};
use crate::{Counters, End, Offset, Profile, Segment, State};
use answer::Challenges;
use open::Opening;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    profile: Arc<Profile>,
    state: State,
    isn: u32,
    peer_isn: Option<u32>,
    opening: Opening,
    sender: Sender,
    receiver: Receiver,
    /// Shift of the windows that the peer offers.
    peer_scale: u8,
    /// Both ends scale their windows.
    opening_scaled: bool,
    agreed: Agreed,
    timestamps: bool,
    /// The timestamp to echo, and when it came (`ts_recent`).
    recent: Option<(u32, Instant)>,
    /// The end of TIME-WAIT, or of the patience in FIN-WAIT-2.
    linger: Instant,
    /// Nobody reads any more.
    left: bool,
    /// To be sent before all else; the last segment of a connection, or to a stranger.
    reset: Option<Segment>,
    /// Duplicate acknowledgements that a remedy still sends.
    repeats: u32,
    challenges: Challenges,
    /// Something may be sent at once; and when the first timer is due where nothing may.
    stirred: bool,
    due: Instant,
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
        let mut endpoint = Self::new(profile, isn);
        endpoint.begin(State::SynSent, now);
        endpoint
    }

    /// An endpoint that takes the first SYN.
    pub fn listen(profile: &Arc<Profile>, isn: u32) -> Self {
        Self::new(profile, isn)
    }

    fn new(profile: &Arc<Profile>, isn: u32) -> Self {
        Self {
            state: State::Listen,
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
            counters: Counters::default(),
            profile: profile.clone(),
        }
    }

    fn begin(&mut self, state: State, now: Instant) {
        self.state = state;
        self.opening.began = now;
        self.opening.send = state == State::SynSent;
        self.stirred = true;
    }

    /// Begins anew as [`connect`](Self::connect) does, in the memory that is there.
    pub fn reconnect(&mut self, profile: &Arc<Profile>, isn: u32, now: Instant) {
        self.relisten(profile, isn);
        self.begin(State::SynSent, now);
    }

    /// Begins anew as [`listen`](Self::listen) does, in the memory that is there.
    pub fn relisten(&mut self, profile: &Arc<Profile>, isn: u32) {
        if !Arc::ptr_eq(&self.profile, profile) {
            self.profile = profile.clone();
        }
        self.sender.reset(profile);
        self.receiver.reset(profile);
        self.state = State::Listen;
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
        self.counters = Counters::default();
    }

    /// A segment arrives; returns the places of its data that have been taken (in order or not),
    /// trimmed to the window; none where it brings nothing or was refused.
    pub fn push(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        self.counters.segments_in += 1;
        let mut taken = None;
        match self.state {
            State::Closed(_) => self.arrive_nowhere(segment),
            State::Listen => self.arrive_in_listen(now, segment),
            State::SynSent => self.arrive_in_syn_sent(now, segment),
            _ => taken = self.arrive(now, segment),
        }
        self.settle(true);
        taken
    }

    /// Whether popping at `now` may give or change anything: most of the time it does not.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.stirred || self.due <= now
    }

    /// Lets timers that are due run out, then the next segment to be sent at `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Segment> {
        if !self.is_due(now) {
            return None;
        }
        let mut segment = self.by_now(now);
        if segment.is_none() && self.due <= now {
            segment = self.by_now(now);
        }
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

    /// What `pop` is to know once something has happened, `news` where it has not just had nothing.
    #[inline]
    fn settle(&mut self, news: bool) {
        self.stirred = news && self.may_send();
        if !self.stirred {
            self.due = self.next_due();
        }
    }

    /// Whether something may leave at once: most of the time nothing may.
    fn may_send(&self) -> bool {
        let speaks = self.sender.may_send() || self.receiver.owed_now || self.repeats > 0;
        (speaks && self.state.is_synchronised()) || self.opening.send || self.reset.is_some()
    }

    /// When to pop next: the earliest timer, or the origin of time where something may be sent at
    /// once; none while nothing will happen by itself.
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

    /// The application writes; returns how many bytes the send buffer took. None are taken before
    /// a SYN has come or gone, nor after [`close`](Self::close).
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let open = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        );
        if !open || self.sender.closing {
            return 0;
        }
        let held = self.sender.written - self.sender.una.max(1);
        let bytes = bytes.min(self.profile.send_buffer.saturating_sub(held));
        if bytes > 0 {
            self.sender.write(now, bytes);
            self.stirred = true;
        }
        bytes
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// The application reads; returns how many bytes there were.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let bytes = self.receiver.read(bytes);
        self.stirred |= self.receiver.owed_now;
        bytes
    }

    /// The application has written everything: a FIN follows the last byte. What the peer still
    /// sends can be read.
    pub fn close(&mut self) {
        if self.sender.closing || self.state.is_closed() {
            return;
        }
        self.stirred = true;
        match self.state {
            State::Listen | State::SynSent => self.finish(End::Finished),
            State::CloseWait => {
                self.sender.closing = true;
                self.state = State::LastAck;
            }
            State::SynReceived => self.sender.closing = true,
            _ => {
                self.sender.closing = true;
                self.state = State::FinWait1;
            }
        }
    }

    /// The application closes and is gone. What the peer still sends is taken and read by nobody, and
    /// from FIN-WAIT-2 on the profile's patience counts: stacks have none with a program that has
    /// only closed its own direction (Linux `tcp_close`, an orphan; BSD `SS_CANTRCVMORE`).
    pub fn leave(&mut self, now: Instant) {
        self.left = true;
        self.stirred = true;
        self.close();
        self.limit_patience(now);
    }

    /// The application gives up: a RST where the peer knows of the connection, and nothing after
    /// it.
    pub fn abort(&mut self) {
        if self.state.is_closed() {
            return;
        }
        if !matches!(self.state, State::Listen | State::SynSent | State::TimeWait) {
            self.reset = Some(self.bare_reset());
        }
        self.finish(End::Aborted);
    }

    fn finish(&mut self, end: End) {
        self.state = State::Closed(end);
        self.opening = Opening::default();
        self.linger = Instant::FAR_FUTURE;
        self.repeats = 0;
        self.stirred = true;
    }

    /// Small segments wait no more (TCP_NODELAY), or do again.
    pub fn set_no_delay(&mut self, no_delay: bool) {
        self.sender.set_no_delay(no_delay);
        self.stirred = true;
    }

    /// Where the connection is in its life.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The FIN has come in order: there is nothing to be read behind what is readable.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.has_closed()
    }

    /// Bytes of data that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.una.clamp(1, self.sender.written) - 1
    }

    /// Bytes of data that have come in order, read or not.
    pub fn received(&self) -> u64 {
        self.receiver.received()
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
        self.peer_isn
    }

    /// The profile it runs by.
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// What its sender knows.
    pub fn look(&self) -> Look {
        Look {
            window: self.sender.congestion().window(),
            threshold: self.sender.congestion().threshold(),
            peer_window: self.sender.peer_window(),
            in_flight: self.sender.in_flight(),
            smoothed: self.sender.rtt().smoothed(),
            timeout: self.sender.timeout(),
            mss: self.sender.mss(),
        }
    }
}

//! The connection behind an endpoint: its state, both directions, and the options that both ends agreed on.
//!
//! `open` handles connection setup, `arrive` incoming segments, `answer` those that fail validation, `leave` outgoing
//! ones, `close` the end. `send` and `receive` hold the two directions. The endpoint decides when to look for a segment.

mod answer;
mod arrive;
mod close;
mod leave;
mod negotiated;
mod open;

use std::ops::Range;
use std::sync::Arc;

use posthaste_units::Instant;

use crate::receive::Receiver;
use crate::send::Sender;
use crate::{EndpointCounters, Offset, Profile, Segment, TcpState};
use answer::Challenges;
use negotiated::Negotiated;
use open::Opening;

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) profile: Arc<Profile>,
    pub(crate) state: TcpState,
    pub(crate) negotiated: Negotiated,
    opening: Opening,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// End of TIME-WAIT, or of the time limit in FIN-WAIT-2.
    linger: Instant,
    /// The application no longer reads.
    left: bool,
    /// Sent before everything else: the last segment of a connection, or the answer to a segment without one.
    reset: Option<Segment>,
    /// Duplicate acknowledgements that a remedy still has to send.
    repeats: u32,
    challenges: Challenges,
    pub(crate) counters: EndpointCounters,
}

impl Connection {
    pub(crate) fn new(profile: &Arc<Profile>, isn: u32) -> Self {
        Self {
            state: TcpState::Listen,
            negotiated: Negotiated::new(profile, isn),
            opening: Opening::default(),
            sender: Sender::new(profile),
            receiver: Receiver::new(profile),
            linger: Instant::FAR_FUTURE,
            left: false,
            reset: None,
            repeats: 0,
            challenges: Challenges::default(),
            counters: EndpointCounters::default(),
            profile: profile.clone(),
        }
    }

    /// Restarts in LISTEN, reusing the allocated memory.
    pub(crate) fn restart(&mut self, profile: &Arc<Profile>, isn: u32) {
        if !Arc::ptr_eq(&self.profile, profile) {
            self.profile = profile.clone();
        }
        self.sender.reset(profile);
        self.receiver.reset(profile);
        self.state = TcpState::Listen;
        self.negotiated = Negotiated::new(profile, isn);
        self.opening = Opening::default();
        self.linger = Instant::FAR_FUTURE;
        self.left = false;
        self.reset = None;
        self.repeats = 0;
        self.challenges = Challenges::default();
        self.counters = EndpointCounters::default();
    }

    /// Starts to open the connection with a SYN.
    pub(crate) const fn open(&mut self, now: Instant) {
        self.state = TcpState::SynSent;
        self.opening.began = now;
        self.opening.send = true;
    }

    /// Processes an arriving segment. Returns the offsets of the accepted data.
    pub(crate) fn push(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        self.counters.segments_in += 1;
        match self.state {
            TcpState::Closed(_) => self.arrive_nowhere(segment),
            TcpState::Listen => self.arrive_in_listen(now, segment),
            TcpState::SynSent => self.arrive_in_syn_sent(now, segment),
            _ => return self.arrive(now, segment),
        }
        None
    }

    /// Returns true if something may be sent at once. Most of the time nothing may.
    pub(crate) fn may_send(&self) -> bool {
        let speaks = self.sender.may_send() || self.receiver.owed_now || self.repeats > 0;
        (speaks && self.state.is_synchronised()) || self.opening.send || self.reset.is_some()
    }

    /// Time of the earliest timer.
    pub(crate) fn next_due(&self) -> Instant {
        if self.state.is_closed() {
            return Instant::FAR_FUTURE;
        }
        let opening = self.opening.due.min(self.linger);
        let open = self.sender.deadline().min(self.receiver.deadline());
        opening.min(open)
    }

    /// Writes application data. Returns the number of bytes that the send buffer accepted.
    pub(crate) fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        let open = matches!(
            self.state,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        );
        let sequence = self.sender.sequence();
        if !open || sequence.closing {
            return 0;
        }
        let held = sequence.written.saturating_sub(sequence.una.max(1));
        debug_assert!(
            held <= self.profile.send_buffer,
            "{held} bytes exceed the send buffer"
        );
        let bytes = bytes.min(self.profile.send_buffer.saturating_sub(held));
        if bytes > 0 {
            self.sender.write(now, bytes);
        }
        bytes
    }

    /// Panics if the state contradicts itself. Checked in debug builds.
    pub(crate) fn assert_invariants(&self) {
        if cfg!(debug_assertions) {
            self.sender.assert_invariants();
            self.receiver.assert_invariants();
            let knows_peer = self.negotiated.peer_isn.is_some() || !self.state.is_synchronised();
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
}

//! The sending half: written data, data to send, and acknowledgements.
//!
//! This file connects the parts. `flight` holds the state common to all stacks: stream offsets (`sequence`), the peer's
//! window, the timer, small segments (`small`), and the segments in flight (`scoreboard`), which `congestion` and
//! `reduction` limit. `bsd` or `pipe` processes acknowledgements and selects the next segment. `window_probe` opens a
//! closed window, and `tail` has the remedies for the end of a flight.

mod ack;
mod bsd;
mod episode;
mod flight;
mod peer_window;
mod pipe;
mod rules;
mod scoreboard;
mod sequence;
mod small;
mod tail;
mod timer;
mod window_probe;

use posthaste_units::{Instant, Span};

use crate::congestion::Congestion;
use crate::profile::RecoveryEngine;
use crate::rtt::Rtt;
use crate::{EndpointCounters, Parity, Profile};
use bsd::BsdRecovery;
use flight::Flight;
use pipe::PipeRecovery;
use sequence::SendSequence;
use tail::TailRemedies;
use timer::Purpose;
use window_probe::WindowProbe;

pub(crate) use ack::Ack;
pub use episode::RecoveryPhase;
pub(crate) use flight::transmit::Chunk;

/// Segments that are sent and not acknowledged, counted as in Linux's `tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardCounts {
    /// All of them (`tcpi_unacked`).
    pub outstanding: u32,
    /// Reported as arrived by SACK, or by duplicates without SACK (`tcpi_sacked`).
    pub sacked: u32,
    /// Marked as lost (`tcpi_lost`).
    pub lost: u32,
    /// Sent again, and that copy not known to have arrived or be lost (`tcpi_retrans`).
    pub repeated: u32,
}

/// The first timeout of data after a retransmitted SYN (RFC 6298, section 5, (5.7)).
const UNMEASURED: Span = Span::from_secs(3);

/// Negotiated options that affect sending.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreed {
    /// Payload of a full segment in bytes.
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) parity: bool,
}

/// Result of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The connection continues.
    Fine,
    /// The limit of retransmissions is reached.
    GaveUp,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    flight: Flight,
    bsd: BsdRecovery,
    pipe: PipeRecovery,
    window_probe: WindowProbe,
    tail: TailRemedies,
    /// Time of the last arrival.
    heard: Instant,
}

impl Sender {
    #[inline(always)]
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            flight: Flight::new(profile),
            bsd: BsdRecovery::default(),
            pipe: PipeRecovery::new(&profile.recovery),
            window_probe: WindowProbe::new(profile.persist),
            tail: TailRemedies::default(),
            heard: Instant::ORIGIN,
        }
    }

    /// Resets the state, reusing the allocated memory.
    pub(crate) fn reset(&mut self, profile: &Profile) {
        let mut board = std::mem::take(&mut self.flight.board);
        board.clear();
        *self = Self::new(profile);
        self.flight.board = board;
    }

    /// Panics if offsets are out of order or the parts contradict each other. Checked in debug builds.
    pub(crate) fn assert_invariants(&self) {
        let SendSequence { una, max, .. } = self.flight.sequence;
        if !cfg!(debug_assertions) || una == 0 {
            return;
        }
        self.flight.assert_invariants();
        let undo = self.pipe.undo.start;
        assert!(
            undo.is_none_or(|undo| undo <= una),
            "an undo begins in the future"
        );
        let limits = [self.tail.copied, self.tail.covered, self.pipe.usage.until];
        assert!(
            limits.iter().all(|limit| *limit <= max),
            "a mark lies beyond the data sent"
        );
    }

    /// Opens the sender once both SYNs are acknowledged. `rtt` is the round-trip time of the handshake, if known.
    pub(crate) fn open(
        &mut self,
        profile: &Profile,
        now: Instant,
        agreed: Agreed,
        window: u64,
        rtt: Option<Span>,
    ) {
        let flight = &mut self.flight;
        flight.rules.agreed = agreed;
        flight
            .congestion
            .resize(agreed.mss, profile.initial_window.bytes(agreed.mss));
        flight.sequence.open();
        flight.peer.open(window);
        flight.spoke = now;
        self.heard = now;
        match rtt {
            Some(rtt) => flight.timer.rtt.sample(rtt, 1, 1),
            None => flight.timer.rtt.doubt(UNMEASURED),
        }
    }

    /// Limits the first flight to a single segment.
    pub(crate) fn begin_with_one(&mut self) {
        let mss = self.mss();
        self.flight.congestion.resize(mss, u64::from(mss));
    }

    pub(crate) const fn set_no_delay(&mut self, no_delay: bool) {
        self.flight.small.no_delay = no_delay;
    }

    /// Adds data written by the application.
    pub(crate) fn write(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.resume(now);
            self.flight.small.began_idle = self.flight.sequence.is_idle();
        }
        self.flight.sequence.written += bytes;
    }

    /// Ends the written data with a FIN.
    pub(crate) const fn close(&mut self) {
        self.flight.sequence.closing = true;
    }

    /// Reduces the window after a pause, as the profile requires.
    fn resume(&mut self, now: Instant) {
        let flight = &mut self.flight;
        if flight.sequence.is_idle() && flight.sequence.max > 1 {
            // BSD counts from the last arrival, all others from the last transmission.
            let since = match flight.rules.recovery.engine {
                RecoveryEngine::Bsd { .. } => now.saturating_since(self.heard),
                RecoveryEngine::Pipe { .. } => now.saturating_since(flight.spoke),
            };
            let timeout = flight.timer.rtt.timeout();
            flight.congestion.after_idle(now, since, timeout);
        }
    }

    /// Handles an acknowledgement of sent data, or one without new information.
    #[inline(always)]
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        counters: &mut EndpointCounters,
    ) {
        let flight = &mut self.flight;
        debug_assert!(
            ack.number <= flight.sequence.shown(),
            "data that was never sent is acknowledged"
        );
        flight.small.began_idle = false;
        window_probe::book_probe(flight, now, ack.number);
        if ack.number > flight.sequence.una {
            flight.timer.in_row = 0;
        }
        self.window_probe.count = 0;
        match flight.rules.recovery.engine {
            RecoveryEngine::Bsd { window_must_match } => {
                self.bsd
                    .acknowledged(flight, now, ack, window_must_match, counters);
                // BSD compares the window with the former one to recognize duplicates, so that it is updated last.
                flight.peer.update(ack);
            }
            RecoveryEngine::Pipe { .. } => {
                let opened = flight.peer.update(ack);
                self.pipe.acknowledged(flight, now, ack, opened, counters);
            }
        }
        self.heard = now;
        if flight.timer.is_for(Purpose::Persist) && flight.fits_something() {
            flight.timer.stop();
            flight.timer.backoff = 0;
        }
    }

    /// Returns false if nothing waits for transmission or retransmission. That is the usual case.
    pub(crate) fn may_send(&self) -> bool {
        let flight = &self.flight;
        let repeats = flight.phase() != RecoveryPhase::Open || flight.board.has_unrepaired();
        let tail = TailRemedies::are_enabled(&flight.rules.recovery);
        let probes = self.window_probe.due || self.pipe.tail_probe.due;
        flight.sequence.unsent() > 0 || repeats || tail || probes
    }

    /// Returns the next segment with data or a FIN. `room` is the payload that options leave of a full segment.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let flight = &mut self.flight;
        if std::mem::take(&mut self.window_probe.due) {
            counters.window_probes += 1;
            return Some(self.window_probe.send(flight, now, room));
        }
        let chunk = match flight.rules.recovery.engine {
            RecoveryEngine::Bsd { .. } => self.bsd.transmit(flight, now, room, counters),
            RecoveryEngine::Pipe { .. } => self.pipe.transmit(flight, now, room, counters),
        };
        if chunk.is_some() {
            return chunk;
        }
        let copy = self.tail.copy(flight, now, counters);
        if copy.is_none() {
            self.bsd.credit = 0;
            self.pipe.deferral.pair = false;
            self.window_probe.watch(flight, now);
        }
        copy
    }

    /// Returns the parity of the last segments if it must be sent now: the covered range, and the payload in bytes.
    pub(crate) fn parity(&mut self, counters: &mut EndpointCounters) -> Option<(Parity, u32)> {
        self.tail.parity(&self.flight, counters)
    }

    /// Handles the timer if it is due.
    pub(crate) fn expire(&mut self, now: Instant, counters: &mut EndpointCounters) -> Expired {
        let flight = &mut self.flight;
        let Some(timer) = flight.timer.running.filter(|timer| timer.due <= now) else {
            return Expired::Fine;
        };
        flight.timer.stop();
        match timer.purpose {
            Purpose::Retransmit => return self.time_out(now, counters),
            Purpose::Probe => self.pipe.tail_probe.expire(flight, now),
            Purpose::Reorder => self.pipe.rack_expired(flight, now, counters),
            Purpose::Early => self.pipe.early_expired(flight, now, counters),
            Purpose::Persist => {
                if !self.window_probe.expire(flight, now) {
                    return Expired::GaveUp;
                }
            }
        }
        Expired::Fine
    }

    fn time_out(&mut self, now: Instant, counters: &mut EndpointCounters) -> Expired {
        let flight = &mut self.flight;
        if flight.board.is_empty() {
            return Expired::Fine;
        }
        if flight.timer.in_row >= flight.rules.retries {
            return Expired::GaveUp;
        }
        flight.timer.in_row += 1;
        flight.timer.backoff += 1;
        counters.timeouts += 1;
        flight.timer.rtt.backed_off(flight.timer.backoff);
        match flight.rules.recovery.engine {
            RecoveryEngine::Bsd { .. } => self.bsd.timed_out(flight, now),
            RecoveryEngine::Pipe { .. } => self.pipe.timed_out(flight, now),
        }
        flight.timer.set_timeout(now);
        Expired::Fine
    }

    /// Time of the next timer.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.flight.timer.deadline()
    }

    pub(crate) const fn sequence(&self) -> &SendSequence {
        &self.flight.sequence
    }

    pub(crate) const fn rtt(&self) -> &Rtt {
        &self.flight.timer.rtt
    }

    pub(crate) const fn congestion(&self) -> &Congestion {
        &self.flight.congestion
    }

    pub(crate) const fn mss(&self) -> u32 {
        self.flight.rules.agreed.mss
    }

    pub(crate) const fn peer_window(&self) -> u64 {
        self.flight.peer.size
    }

    pub(crate) const fn peer_largest_window(&self) -> u64 {
        self.flight.peer.largest
    }

    /// The current retransmission timeout.
    pub(crate) fn timeout(&self) -> Span {
        self.flight.timer.timeout()
    }

    /// Bytes in flight, as the profile counts them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.flight.in_flight()
    }

    pub(crate) const fn phase(&self) -> RecoveryPhase {
        self.flight.phase()
    }

    /// Duplicates that prove a loss.
    pub(crate) const fn reordering(&self) -> u32 {
        self.pipe.reordering.threshold
    }

    /// Returns true if an echoed timestamp matters although no new data is acknowledged.
    pub(crate) const fn watches_echoes(&self) -> bool {
        self.pipe.undo.watches_echoes()
    }

    pub(crate) fn board_counts(&self) -> BoardCounts {
        self.flight.board_counts()
    }
}

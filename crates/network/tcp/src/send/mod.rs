//! The sending half: written data, data to send, and acknowledgements.
//!
//! This file holds the parts common to all stacks: stream offsets, the peer's window, the timer, small segments,
//! round-trip times. `bsd` or `pipe` processes acknowledgements, and `transmit` selects the next segment. `scoreboard`
//! counts segments; `congestion` and `reduction` limit the bytes in flight.

mod bsd;
pub mod congestion;
mod defer;
mod detect;
mod episode;
mod expire;
mod pipe;
mod rack;
pub mod reduction;
pub mod rtt;
mod scoreboard;
mod timer;
mod transmit;
mod undo;

use posthaste_units::{Instant, Span};

use crate::profile::{Nagle, Persist, Recovery, RecoveryEngine, RoundTrips};
use crate::{EndpointCounters, Offset, Profile, TimerClock};
use congestion::{AckProgress, Basis, Congestion, Counting, GrowthLimit};
use episode::Episode;
use reduction::Reduction;
use rtt::Rtt;
use scoreboard::Scoreboard;
use timer::{Purpose, SenderTimer};

pub use episode::RecoveryPhase;
pub(crate) use expire::Expired;
pub(crate) use transmit::Chunk;

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

/// An acknowledgement with unwrapped sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    pub(crate) number: Offset,
    /// The window in bytes.
    pub(crate) window: u64,
    /// Offset of the acknowledging segment in the peer's stream.
    pub(crate) seq: Offset,
    /// The segment has data or a FIN.
    pub(crate) carries: bool,
    pub(crate) blocks: &'a [(Offset, Offset)],
    /// The echoed timestamp and its age.
    pub(crate) echo: Option<(u32, Span)>,
}

/// Negotiated options that affect sending.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreed {
    /// Payload of a full segment in bytes.
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) parity: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    rules: Recovery,
    clock: TimerClock,
    persist: Persist,
    round_trips: RoundTrips,
    nagle: Nagle,
    /// Nothing was unacknowledged when the last write began, and no acknowledgement has arrived since.
    began_idle: bool,
    pub(crate) no_delay: bool,
    retries: u32,
    counting: Counting,
    limit: GrowthLimit,
    any_window: bool,
    usable_basis: bool,
    /// One tick of the timestamp clock.
    tick: Span,
    /// The timestamp that the last acknowledgement echoed.
    echoed: Option<u32>,
    agreed: Agreed,
    /// Everything before this offset is acknowledged.
    pub(crate) una: Offset,
    /// Next offset to send. BSD's timeout pulls it back.
    next: Offset,
    /// End of the sequence numbers ever sent (exclusive).
    pub(crate) max: Offset,
    /// End of the written data (exclusive).
    pub(crate) written: Offset,
    /// A FIN follows the last byte.
    pub(crate) closing: bool,
    window: u64,
    /// Segment and acknowledgement of the last window update (`snd_wl1`, `snd_wl2`).
    window_from: (Offset, Offset),
    largest_window: u64,
    /// The end of the last segment that was not full (`snd_sml`).
    small_end: Offset,
    board: Scoreboard,
    rtt: Rtt,
    congestion: Congestion,
    reduction: Reduction,
    /// Doublings of the timeout; and timeouts since the last acknowledgement of new data.
    backoff: u32,
    in_row: u32,
    timer: Option<SenderTimer>,
    episode: Episode,
    /// The congestion window was the last limit on sending; the segments in flight then; and the offset until which
    /// these values hold (`tcp_cwnd_validate`).
    limited: bool,
    most_out: usize,
    limited_until: Offset,
    /// Time of the last arrival, and of the last transmission.
    heard: Instant,
    spoke: Instant,
    /// End of the data whose tail copies have been sent.
    copied: Offset,
    /// Parity covers everything before this offset.
    covered: Offset,
    probes: u32,
    /// A window probe must be sent; a probe of one byte beyond `max` has been sent.
    probe_now: bool,
    probed: bool,
}

impl Sender {
    #[inline(always)]
    pub(crate) fn new(profile: &Profile) -> Self {
        let mss = u32::from(profile.offer.mss);
        Self {
            rules: profile.recovery,
            clock: profile.clock,
            persist: profile.persist,
            round_trips: profile.round_trips,
            nagle: profile.nagle,
            began_idle: false,
            no_delay: false,
            retries: profile.handshake.retries,
            counting: profile.control.counting,
            limit: profile.control.limit,
            any_window: profile.strictness.any_window,
            usable_basis: profile.control.basis == Basis::Usable,
            tick: profile.offer.timestamp_tick,
            echoed: None,
            agreed: Agreed {
                mss,
                ..Agreed::default()
            },
            una: 0,
            next: 0,
            max: 0,
            written: 1,
            closing: false,
            window: 0,
            window_from: (0, 0),
            largest_window: 0,
            small_end: 0,
            board: Scoreboard::default(),
            rtt: Rtt::new(profile.rtt, profile.timeout),
            congestion: Congestion::new(profile.control, mss, profile.initial_window.bytes(mss)),
            reduction: Reduction::new(profile.reduction),
            backoff: 0,
            in_row: 0,
            timer: None,
            episode: Episode {
                threshold: profile.recovery.threshold,
                ..Episode::default()
            },
            limited: false,
            most_out: 0,
            limited_until: 0,
            heard: Instant::ORIGIN,
            spoke: Instant::ORIGIN,
            copied: 0,
            covered: 0,
            probes: 0,
            probe_now: false,
            probed: false,
        }
    }

    /// Resets the state, reusing the allocated memory.
    pub(crate) fn reset(&mut self, profile: &Profile) {
        let mut board = std::mem::take(&mut self.board);
        board.clear();
        *self = Self {
            board,
            ..Self::new(profile)
        };
    }

    /// Panics if offsets are out of order or the parts contradict each other. Checked in debug builds.
    pub(crate) fn assert_invariants(&self) {
        if !cfg!(debug_assertions) || self.una == 0 {
            return;
        }
        let Self { una, next, max, .. } = *self;
        assert!(
            una <= next,
            "offset {next} is sent next, and {una} is acknowledged"
        );
        assert!(
            next <= max,
            "offset {next} is sent next, and only {max} was reached"
        );
        let end = self.written + u64::from(self.closing);
        assert!(
            max <= end,
            "offset {max} was sent, and only {end} is written"
        );
        self.board.assert_invariants(una, max);
        self.congestion.assert_invariants();
        let Episode { recover, undo, .. } = self.episode;
        assert!(recover <= max, "a recovery lasts beyond the data sent");
        assert!(
            undo.is_none_or(|undo| undo <= una),
            "an undo begins in the future"
        );
        let limits = [
            self.copied,
            self.covered,
            self.limited_until,
            self.small_end,
        ];
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
        self.agreed = agreed;
        self.congestion
            .resize(agreed.mss, profile.initial_window.bytes(agreed.mss));
        (self.una, self.next, self.max) = (1, 1, 1);
        self.window = window;
        self.largest_window = window;
        self.window_from = (1, 1);
        self.heard = now;
        self.spoke = now;
        match rtt {
            Some(rtt) => self.rtt.sample(rtt, 1, 1),
            None => self.rtt.doubt(UNMEASURED),
        }
    }

    /// Limits the first flight to a single segment.
    pub(crate) fn begin_with_one(&mut self) {
        self.congestion
            .resize(self.agreed.mss, u64::from(self.agreed.mss));
    }

    pub(crate) fn set_no_delay(&mut self, no_delay: bool) {
        self.no_delay = no_delay;
    }

    /// End of the sequence numbers that the peer can have seen (exclusive).
    pub(crate) const fn shown(&self) -> Offset {
        self.max + self.probed as u64
    }

    pub(crate) const fn fin_sent(&self) -> bool {
        self.max > self.written
    }

    pub(crate) const fn fin_acknowledged(&self) -> bool {
        self.una > self.written
    }

    /// Sequence numbers written and never sent, including the FIN's.
    const fn unsent(&self) -> u64 {
        let end = self.written + self.closing as u64;
        debug_assert!(self.max <= end, "more was sent than is written");
        end.saturating_sub(self.max)
    }

    /// Returns false if nothing waits for transmission or retransmission. That is the usual case.
    pub(crate) fn may_send(&self) -> bool {
        let repeats = self.phase() != RecoveryPhase::Open || self.board.has_unrepaired();
        let tail = self.rules.tail_copies > 0 || self.rules.tail_parity > 0;
        self.unsent() > 0 || repeats || tail || self.probe_now || self.episode.probing
    }

    pub(crate) const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    pub(crate) const fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    pub(crate) const fn peer_window(&self) -> u64 {
        self.window
    }

    pub(crate) const fn mss(&self) -> u32 {
        self.agreed.mss
    }

    pub(crate) const fn peer_largest_window(&self) -> u64 {
        self.largest_window
    }

    /// The current retransmission timeout.
    pub(crate) fn timeout(&self) -> Span {
        self.rtt.timeout_after(self.backoff)
    }

    /// Bytes in flight, as the profile counts them.
    pub(crate) fn in_flight(&self) -> u64 {
        match self.rules.engine {
            RecoveryEngine::Bsd { .. } => self.next - self.una,
            RecoveryEngine::Pipe { .. } => {
                let heard = u64::from(self.reno_sacked()) * u64::from(self.agreed.mss);
                self.board.in_flight().saturating_sub(heard)
            }
        }
    }

    /// Segments that duplicates have reported as arrived, without SACK.
    fn reno_sacked(&self) -> u32 {
        if self.agreed.sack {
            0
        } else {
            self.episode.duplicates
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
        debug_assert!(
            ack.number <= self.shown(),
            "data that was never sent is acknowledged"
        );
        self.began_idle = false;
        self.book_probe(now, ack.number);
        if ack.number > self.una {
            self.in_row = 0;
        }
        self.episode.credit = 0;
        self.probes = 0;
        self.echoed = ack.echo.map(|(stamp, _)| stamp);
        match self.rules.engine {
            RecoveryEngine::Bsd { window_must_match } => {
                self.bsd_acknowledged(now, ack, window_must_match, counters);
                self.update_window(ack);
            }
            RecoveryEngine::Pipe { .. } => {
                let opened = self.update_window(ack);
                self.pipe_acknowledged(now, ack, opened, counters);
            }
        }
        self.heard = now;
        if self.timer_is(Purpose::Persist) && self.fits_something() {
            self.timer = None;
            self.backoff = 0;
        }
    }

    /// Takes the window of the newest segment (RFC 9293, section 3.10.7.4). Returns true if the segment counts as a
    /// window update, as in Linux (`tcp_may_update_window`).
    fn update_window(&mut self, ack: &Ack<'_>) -> bool {
        let same = ack.seq == self.window_from.0;
        let changes = if self.any_window {
            ack.window != self.window
        } else {
            ack.window > self.window
        };
        let newer = ack.number > self.window_from.1 || ack.seq > self.window_from.0;
        if !(newer || same && changes) || ack.number < self.window_from.1 {
            return false;
        }
        self.window = ack.window;
        self.largest_window = self.largest_window.max(ack.window);
        self.window_from = (ack.seq.max(self.window_from.0), ack.number);
        true
    }

    /// Charge of a segment in the units of the window.
    fn charge(&self, len: u64) -> u32 {
        match self.counting {
            Counting::Segments => self.agreed.mss,
            Counting::Bytes => len as u32,
        }
    }

    fn timer_is(&self, purpose: Purpose) -> bool {
        self.timer.is_some_and(|timer| timer.purpose == purpose)
    }

    fn set_timer(&mut self, now: Instant, span: Span, purpose: Purpose) {
        let due = self.clock.expiry(now, span);
        debug_assert!(due >= now, "a timer is set to the past");
        self.timer = Some(SenderTimer { due, purpose });
    }

    /// Time of the next timer.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.timer.map_or(Instant::FAR_FUTURE, |timer| timer.due)
    }

    /// Records a round-trip time. Only a new one ends the back-off (RFC 6298, section 5).
    fn sample(&mut self, rtt: Span, ack: &Ack<'_>) {
        self.rtt.sample(rtt, ack.number, self.max);
        self.backoff = 0;
    }

    fn progress(&self, now: Instant, delivered: (u64, u32), ack: &Ack<'_>) -> AckProgress {
        AckProgress {
            now,
            bytes: delivered.0,
            segments: delivered.1,
            rtt: None,
            acked: ack.number,
            next: self.max,
            in_flight: 0,
            limited: self.limited,
        }
    }

    /// Reduces the window after a pause, as the profile requires.
    fn resume(&mut self, now: Instant) {
        if self.una == self.max && self.max > 1 {
            let since = match self.rules.engine {
                RecoveryEngine::Bsd { .. } => now.saturating_since(self.heard),
                RecoveryEngine::Pipe { .. } => now.saturating_since(self.spoke),
            };
            self.congestion.after_idle(now, since, self.rtt.timeout());
        }
    }

    /// Adds data written by the application.
    pub(crate) fn write(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.resume(now);
            self.began_idle = self.una == self.max;
        }
        self.written += bytes;
    }

    pub(crate) fn phase(&self) -> RecoveryPhase {
        self.episode.phase
    }

    /// Duplicates that prove a loss.
    pub(crate) const fn reordering(&self) -> u32 {
        self.episode.threshold
    }

    pub(crate) fn board_counts(&self) -> BoardCounts {
        BoardCounts {
            outstanding: self.board.len() as u32,
            sacked: self.board.sacked_segments() + self.reno_sacked(),
            lost: self.board.lost_segments(),
            repeated: self.board.again_segments(),
        }
    }
}

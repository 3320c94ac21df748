//! Congestion window and slow-start threshold, in bytes.
//!
//! This file holds the parts common to all algorithms: slow start, counting, loss, idle periods. `reno`, `bic` and
//! `cubic` compute growth beyond slow start. `hystart` ends slow start without a loss. `reduction` sets the
//! window *during* recovery, and the detectors decide about losses.

mod bic;
mod cubic;
mod hystart;
mod reno;

use posthaste_units::{Instant, Span};

use crate::Offset;

/// A stack's congestion control, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Growth beyond slow start, and reduction at a loss.
    pub avoidance: Avoidance,
    /// Growth in slow start.
    pub slow_start: SlowStart,
    /// End of slow start without a loss.
    pub exit: Exit,
    /// Unit of the window.
    pub counting: Counting,
    /// Condition for growth.
    pub limit: GrowthLimit,
    /// Basis of the reduction at a loss.
    pub basis: Basis,
    /// Window after a pause.
    pub restart: Restart,
}

/// Congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Avoidance {
    /// A segment per window; half at a loss (RFC 5681, section 3.1).
    Reno,
    /// Binary search; reduced by a fifth at a loss. Reno up to 14 segments (Xu, Harfoush, Rhee 2004).
    Bic,
    /// A cubic function of the time since the loss; reduced by three tenths at a loss (RFC 9438).
    Cubic {
        /// Half at the first loss of a connection (FreeBSD, `cubic_ssthresh_update`).
        halves_first: bool,
    },
}

/// Growth in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// A segment per acknowledgement, regardless of its size (BSD and Linux of 2005). Also used beyond slow start.
    PerAck,
    /// A segment per segment acknowledged (Linux since 3.12, `tcp_slow_start`).
    PerSegment,
    /// The bytes acknowledged, at most `limit` segments per acknowledgement (RFC 3465's L; 1 is RFC 5681's equation 2).
    Bytes {
        /// Segments per acknowledgement: L.
        limit: u32,
    },
}

/// End of slow start before a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Only a loss ends slow start.
    AtLoss,
    /// Linux's HyStart: trains of acknowledgements and growing delay.
    HyStart,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
}

/// The unit of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes.
    Bytes,
    /// Segments: each counts as a full one, and the window is a multiple of full segments.
    Segments,
}

/// Growth of an unused window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthLimit {
    /// The window always grows (BSD of 2005).
    Ignored,
    /// Grows only if the window had no space for a segment before the acknowledgement (Linux of 2005; RFC 9438, section
    /// 5.8).
    Full,
    /// Grows if the window was the last limit on sending; in slow start also while it is less than twice the bytes in
    /// flight (Linux since 3.16, `tcp_is_cwnd_limited`).
    Validated,
}

/// Basis of the threshold after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Bytes in flight (RFC 5681, equation 4).
    Flight,
    /// The window (Linux).
    Window,
    /// The smaller of the congestion window and the peer's window, in whole segments (BSD).
    Usable,
}

/// Window after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// At most the initial window after a timeout without sending (RFC 5681, section 4.1).
    Initial,
    /// This number of segments after a timeout without receiving (BSD's `slowstart_flightsize`).
    Segments(u32),
    /// Half for each timeout that has passed, but at least the initial window (RFC 2861, section 3.2; Linux's
    /// `tcp_cwnd_restart`).
    Halving,
}

/// Effect of one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckProgress {
    /// Time of arrival.
    pub now: Instant,
    /// Bytes newly acknowledged or SACKed.
    pub bytes: u64,
    /// Segments newly acknowledged or SACKed.
    pub segments: u32,
    /// Round-trip time measured with it.
    pub rtt: Option<Span>,
    /// Acknowledged offset: everything below is acknowledged.
    pub acked: Offset,
    /// Next offset to send.
    pub next: Offset,
    /// Bytes in flight before it arrived. For [`GrowthLimit::Validated`], the maximum within a window.
    pub in_flight: u64,
    /// The congestion window was the last limit on sending.
    pub limited: bool,
}

/// Congestion state of one connection.
#[derive(Clone, Debug)]
pub struct Congestion {
    control: Control,
    mss: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    /// Bytes acknowledged towards the next segment of growth.
    credit: u64,
    /// Window and threshold before the losses of this episode.
    before: Option<(u64, u64)>,
    bic: bic::Bic,
    cubic: cubic::Cubic,
    exit: hystart::HyStartState,
}

/// No threshold yet.
const UNKNOWN: u64 = u64::MAX;
/// Upper bound of all windows: the largest that TCP can advertise (RFC 7323, section 2.2).
const LARGEST: u64 = 1 << 30;

impl Congestion {
    /// Creates the state of a new connection: `mss` bytes are a full segment, `initial` is the initial window.
    pub fn new(control: Control, mss: u32, initial: u64) -> Self {
        let mss = u64::from(mss).max(1);
        Self {
            control,
            mss,
            initial,
            window: initial,
            threshold: UNKNOWN,
            credit: 0,
            before: None,
            bic: bic::Bic::default(),
            cubic: cubic::Cubic::default(),
            exit: hystart::HyStartState::default(),
        }
    }

    /// Congestion window in bytes.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Slow-start threshold in bytes. The largest number until the first loss or end of slow start.
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns true below the threshold; for old stacks also at the threshold.
    pub fn in_slow_start(&self) -> bool {
        match self.control.slow_start {
            SlowStart::PerSegment => self.window < self.threshold,
            SlowStart::PerAck | SlowStart::Bytes { .. } => self.window <= self.threshold,
        }
    }

    /// Handles an acknowledgement outside recovery.
    pub fn acked(&mut self, progress: &AckProgress) {
        self.bic.observe(progress);
        self.cubic.observe(progress);
        let mut share = 1;
        if self.in_slow_start() {
            let segments = self.window / self.mss;
            match self.exit.acked(self.control.exit, progress, segments) {
                hystart::HyStartVerdict::Stay => {}
                hystart::HyStartVerdict::Slower(divisor) => share = divisor,
                hystart::HyStartVerdict::Leave => self.threshold = self.window,
            }
        }
        if !self.may_grow(progress) {
            return;
        }
        let bytes = match self.control.counting {
            Counting::Bytes => progress.bytes,
            Counting::Segments => u64::from(progress.segments) * self.mss,
        };
        let rest = if self.in_slow_start() {
            self.slow_start(bytes, share)
        } else {
            bytes
        };
        if rest > 0 {
            self.avoid(progress.now, rest);
        }
        self.window = self.window.min(LARGEST);
        self.assert_invariants();
    }

    fn may_grow(&self, progress: &AckProgress) -> bool {
        match self.control.limit {
            GrowthLimit::Ignored => true,
            GrowthLimit::Full => progress.in_flight + self.mss > self.window,
            GrowthLimit::Validated => {
                progress.limited || (self.in_slow_start() && self.window < 2 * progress.in_flight)
            }
        }
    }

    /// Grows by the rule of slow start. Returns the acknowledged bytes beyond it.
    fn slow_start(&mut self, bytes: u64, share: u64) -> u64 {
        match self.control.slow_start {
            SlowStart::PerAck => {
                self.window += self.mss;
                0
            }
            SlowStart::PerSegment => {
                let grow = bytes.min(self.threshold - self.window);
                self.window += grow;
                bytes - grow
            }
            SlowStart::Bytes { limit } => {
                self.window += bytes.min(u64::from(limit) * self.mss) / share;
                0
            }
        }
    }

    /// Grows beyond slow start, in proportion to the bytes acknowledged.
    fn avoid(&mut self, now: Instant, bytes: u64) {
        let per_ack = self.control.slow_start == SlowStart::PerAck;
        let segments = self.window / self.mss;
        let need = match self.control.avoidance {
            Avoidance::Reno if per_ack && self.control.counting == Counting::Bytes => {
                self.window += reno::per_ack(self.mss, self.window);
                return;
            }
            Avoidance::Reno => self.window,
            Avoidance::Bic => self.bic.need(now, segments) * self.mss,
            Avoidance::Cubic { .. } => self.cubic.need(now, segments, bytes / self.mss) * self.mss,
        };
        let gained = if per_ack {
            reno::per_acks(&mut self.credit, self.mss, need)
        } else {
            reno::per_bytes(&mut self.credit, bytes, need)
        };
        self.window += gained * self.mss;
    }

    /// Handles the start of recovery after a loss, with `in_flight` bytes in flight (for [`Basis::Usable`] the smaller
    /// of both windows). Sets the threshold; recovery sets the window.
    pub fn lost(&mut self, in_flight: u64) {
        self.before.get_or_insert((self.window, self.threshold));
        self.threshold = self.reduced(in_flight);
        debug_assert!(
            self.threshold >= 2 * self.mss,
            "the threshold falls below two segments"
        );
        self.credit = 0;
    }

    /// Returns the reduced threshold: a share of the basis, at least two segments.
    fn reduced(&mut self, in_flight: u64) -> u64 {
        let basis = match self.control.basis {
            Basis::Flight | Basis::Usable => in_flight,
            Basis::Window => self.window,
        };
        let share = match self.control.avoidance {
            Avoidance::Reno => basis / 2,
            Avoidance::Bic => self.bic.lost(basis / self.mss) * self.mss,
            Avoidance::Cubic { halves_first } => self.cubic.lost(basis, self.mss, halves_first),
        };
        let share = match self.control.basis {
            Basis::Flight => share,
            Basis::Window | Basis::Usable => share / self.mss * self.mss,
        };
        share.max(2 * self.mss)
    }

    /// Handles a timeout of data sent once: sets a new threshold and a window of one segment.
    pub fn timed_out(&mut self, in_flight: u64) {
        self.lost(in_flight);
        self.collapse();
    }

    /// Handles a repeated timeout: a window of one segment. The threshold stays (RFC 5681, section 3.1).
    pub fn collapse(&mut self) {
        self.bic.forget();
        self.cubic.forget();
        self.exit = hystart::HyStartState::default();
        self.window = self.mss;
        self.credit = 0;
    }

    /// Sets the window during recovery.
    pub fn set_window(&mut self, window: u64) {
        self.window = window.clamp(self.mss, LARGEST);
    }

    /// Undoes a reduction without a real loss: restores at least the former window and threshold.
    pub fn undo(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
        self.assert_invariants();
    }

    /// Ends the episode. Its reduction can no longer be undone.
    pub fn finished(&mut self) {
        self.before = None;
    }

    /// Handles a send at `now` after `idle` without data in flight (in BSD: without an arrival). `timeout` is the
    /// retransmission timeout.
    pub fn after_idle(&mut self, now: Instant, idle: Span, timeout: Span) {
        self.cubic.paused(now, idle);
        let over = match self.control.restart {
            Restart::Segments(_) => idle >= timeout,
            Restart::Initial | Restart::Halving => idle > timeout,
        };
        if !over {
            return;
        }
        match self.control.restart {
            Restart::Initial => self.window = self.window.min(self.initial),
            Restart::Segments(count) => self.window = u64::from(count) * self.mss,
            Restart::Halving => self.halve(idle, timeout),
        }
        self.credit = 0;
        self.assert_invariants();
    }

    /// Panics if the window or the threshold is out of bounds. Checked in debug builds.
    pub(crate) fn assert_invariants(&self) {
        let least = self.mss.min(self.initial);
        debug_assert!(self.window >= least, "the window falls below a segment");
        debug_assert!(
            self.window <= LARGEST.max(self.initial),
            "the window exceeds the largest of TCP"
        );
        debug_assert!(
            self.threshold >= least,
            "the threshold falls below a segment"
        );
    }

    fn halve(&mut self, idle: Span, timeout: Span) {
        let kept = self.window / 2 + self.window / 4;
        self.threshold = self.threshold.max(kept / self.mss * self.mss);
        let times = idle.as_nanos().saturating_sub(1) / timeout.as_nanos().max(1);
        let floor = self.initial.min(self.window);
        let halved = (self.window / self.mss) >> times.min(63);
        self.window = (halved * self.mss).max(floor);
    }

    /// Sets the maximum segment size, and restarts with the initial window `initial`.
    pub fn resize(&mut self, mss: u32, initial: u64) {
        *self = Self::new(self.control, mss, initial);
    }
}

#[cfg(test)]
mod tests;

//! How much may be out: the congestion window and the slow-start threshold, in bytes.
//!
//! This file has what all ways share: slow start, counting, loss, idling. How the window grows
//! beyond slow start is a file each (`reno`, `bic`, `cubic`), and so is when slow start is left
//! without a loss (`hystart`). The window *during* recovery is `send::reduction`'s; what is
//! lost, the detectors'.

mod bic;
mod cubic;
mod hystart;
mod reno;

use posthaste_units::{Instant, Span};

use crate::Offset;

/// A stack's congestion control, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Growth beyond slow start, and how much a loss takes.
    pub avoidance: Avoidance,
    /// Growth in slow start.
    pub slow_start: SlowStart,
    /// When slow start ends without a loss.
    pub exit: Exit,
    /// What the window is counted in.
    pub counting: Counting,
    /// When the window may grow at all.
    pub limit: Limit,
    /// What a loss takes its share of.
    pub basis: Basis,
    /// What is left of the window after a pause.
    pub restart: Restart,
}

/// Congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Avoidance {
    /// A segment per window, half at a loss (RFC 5681, section 3.1).
    Reno,
    /// Binary search, a fifth at a loss; Reno below 14 segments (Xu, Harfoush, Rhee 2004).
    Bic,
    /// A cubic of the time since the loss, three tenths at a loss (RFC 9438).
    Cubic {
        /// Half at the first loss of a connection (FreeBSD, `cubic_ssthresh_update`).
        halves_first: bool,
    },
}

/// Slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// A segment per acknowledgement, however much it covers (BSD and Linux of 2005). So is
    /// counted beyond slow start, too.
    PerAck,
    /// A segment per segment acknowledged (Linux since 3.12, `tcp_slow_start`).
    PerSegment,
    /// The bytes acknowledged, at most so many segments per acknowledgement (RFC 3465's L; 1 is
    /// RFC 5681's equation 2).
    Bytes {
        /// L.
        limit: u32,
    },
}

/// Leaving slow start before something is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Only a loss ends it.
    AtLoss,
    /// Linux's HyStart: by trains of acknowledgements and by growing delay.
    HyStart,
    /// RFC 9406.
    HyStartPlusPlus,
}

/// The unit of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Bytes.
    Bytes,
    /// Segments: each counts as a full one, and the window is a multiple of that.
    Segments,
}

/// Growth of a window that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It grows all the same (BSD of 2005).
    Ignored,
    /// It does not grow unless it had no room for a segment before the acknowledgement (Linux of 2005;
    /// RFC 9438, section 5.8).
    Full,
    /// It grows if sending last stopped at it; in slow start also while it is less than twice
    /// what was out (Linux since 3.16, `tcp_is_cwnd_limited`).
    Validated,
}

/// What the threshold is a share of after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// What was out (RFC 5681, equation 4).
    Flight,
    /// The window (Linux).
    Window,
    /// The smaller of it and the peer's, in whole segments (BSD).
    Usable,
}

/// The window after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// At most the first flight after a timeout without sending (RFC 5681, section 4.1).
    Initial,
    /// So many segments after a timeout without receiving (BSD's `slowstart_flightsize`).
    Segments(u32),
    /// Half for each timeout that has passed, no less than the first flight (RFC 2861, section
    /// 3.2; Linux's `tcp_cwnd_restart`).
    Halving,
}

/// What an acknowledgement has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// When.
    pub now: Instant,
    /// Bytes newly acknowledged or SACKed.
    pub bytes: u64,
    /// Segments newly acknowledged or SACKed.
    pub segments: u32,
    /// A round-trip time measured with it.
    pub rtt: Option<Span>,
    /// Everything below is acknowledged.
    pub acked: Offset,
    /// What is sent next.
    pub next: Offset,
    /// What was out before it came; for [`Limit::Validated`] the most that was, within a window.
    pub in_flight: u64,
    /// Sending last stopped at the congestion window.
    pub limited: bool,
}

/// One connection's window.
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
    exit: hystart::State,
}

/// No threshold yet.
const UNKNOWN: u64 = u64::MAX;
/// No window is ever larger: the largest that TCP can advertise (RFC 7323, section 2.2).
const LARGEST: u64 = 1 << 30;

impl Congestion {
    /// A connection begins: `mss` bytes are a full segment, `initial` may be out at first.
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
            exit: hystart::State::default(),
        }
    }

    /// How many bytes may be out.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Where slow start ends; the largest number while nobody knows.
    pub const fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Below the threshold; old stacks also when at it.
    pub fn in_slow_start(&self) -> bool {
        match self.control.slow_start {
            SlowStart::PerSegment => self.window < self.threshold,
            SlowStart::PerAck | SlowStart::Bytes { .. } => self.window <= self.threshold,
        }
    }

    /// Something was acknowledged outside recovery.
    pub fn acked(&mut self, progress: &Progress) {
        self.bic.observe(progress);
        self.cubic.observe(progress);
        let mut share = 1;
        if self.in_slow_start() {
            let segments = self.window / self.mss;
            match self.exit.acked(self.control.exit, progress, segments) {
                hystart::Verdict::Stay => {}
                hystart::Verdict::Slower(divisor) => share = divisor,
                hystart::Verdict::Leave => self.threshold = self.window,
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
    }

    fn may_grow(&self, progress: &Progress) -> bool {
        match self.control.limit {
            Limit::Ignored => true,
            Limit::Full => progress.in_flight + self.mss > self.window,
            Limit::Validated => {
                progress.limited || (self.in_slow_start() && self.window < 2 * progress.in_flight)
            }
        }
    }

    /// Grows by the rule of slow start; returns how many bytes were acknowledged beyond it.
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

    /// Grows beyond slow start: by a segment for so many bytes acknowledged.
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

    /// Something was lost and recovery begins, with `in_flight` bytes out (for [`Basis::Usable`]
    /// the smaller of both windows): sets the threshold; the window is the recovery's to set.
    pub fn lost(&mut self, in_flight: u64) {
        self.before.get_or_insert((self.window, self.threshold));
        self.threshold = self.reduced(in_flight);
        self.credit = 0;
    }

    /// The share of what was out that is right now.
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

    /// The timer ran out on data sent once: a new threshold, and a single segment may be out.
    pub fn timed_out(&mut self, in_flight: u64) {
        self.lost(in_flight);
        self.collapse();
    }

    /// The timer ran out again: a single segment, and the threshold stays (RFC 5681, section 3.1).
    pub fn collapse(&mut self) {
        self.bic.forget();
        self.cubic.forget();
        self.exit = hystart::State::default();
        self.window = self.mss;
        self.credit = 0;
    }

    /// Recovery sets the window.
    pub fn set_window(&mut self, window: u64) {
        self.window = window.clamp(self.mss, LARGEST);
    }

    /// Nothing was lost after all: window and threshold are what they were, at least.
    pub fn undo(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
        }
    }

    /// The losses of this episode are dealt with: nothing can be undone any more.
    pub fn finished(&mut self) {
        self.before = None;
    }

    /// Something is to be sent at `now`, nothing being out for `idle` (in BSD: nothing having come
    /// for so long); `timeout` is the retransmission timeout.
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
    }

    fn halve(&mut self, idle: Span, timeout: Span) {
        let kept = self.window / 2 + self.window / 4;
        self.threshold = self.threshold.max(kept / self.mss * self.mss);
        let times = idle.as_nanos().saturating_sub(1) / timeout.as_nanos().max(1);
        let floor = self.initial.min(self.window);
        let halved = (self.window / self.mss) >> times.min(63);
        self.window = (halved * self.mss).max(floor);
    }

    /// The segments to come are of at most `mss` bytes; `initial` may be out at first.
    pub fn resize(&mut self, mss: u32, initial: u64) {
        *self = Self::new(self.control, mss, initial);
    }
}

#[cfg(test)]
mod tests;

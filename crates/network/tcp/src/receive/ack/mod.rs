//! Timing of acknowledgements: at once, later, or not at all.
//!
//! Other modules decide the content of an acknowledgement (SACK blocks, window). Acknowledgements that protect a
//! connection (RFC 5961) bypass this policy; they always leave at once. `adaptive` holds Linux's rule.

mod adaptive;

use posthaste_units::{Instant, Span};

use crate::TimerClock;
use adaptive::Adaptive;

/// A stack's rule for acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// RFC 5681, section 4.2, and RFC 9293, section 3.8.6.3. Acknowledges at once at least every second full segment
    /// and every segment that fills or shows a gap. Acknowledges the rest within `delay`.
    Rfc {
        /// Longest delay; less than 500 ms.
        delay: Span,
    },
    /// BSD (FreeBSD 6 and 14, `DELAY_ACK` in tcp_input.c). A segment that arrives while an acknowledgement is delayed
    /// is acknowledged at once, whatever its length.
    Bsd {
        /// Delay: `net.inet.tcp.delacktime`.
        delay: Span,
    },
    /// Linux (`__tcp_ack_snd_check` in tcp_input.c, `tcp_send_delayed_ack` in tcp_output.c): every segment at once for
    /// a while, then delayed by an estimate of the gaps between segments.
    Linux {
        /// Maximum number of segments acknowledged at once from the first segment on, after a pause of a timeout, and
        /// after a duplicate: `TCP_MAX_QUICKACKS`, 16. Half a window of segments if that is fewer.
        quick: u32,
        /// Shortest delay: `TCP_DELACK_MIN`, 40 ms.
        min: Span,
        /// Longest delay: `TCP_DELACK_MAX`, 200 ms.
        max: Span,
        /// Reduces the number of acknowledgements of segments beyond a gap.
        compression: Option<AckCompression>,
        /// Acknowledges a full segment with PSH once everything has been read (since 6.7), as a small one always is.
        push_ends: bool,
        /// The program of a connecting end writes before the connection is established (`sk_write_pending` in
        /// `tcp_rcv_synsent_state_process`). Its first data then carries the acknowledgement of the SYN-ACK, and the
        /// first reply is not acknowledged at once.
        early_write: bool,
    },
}

/// Linux since 4.18: short delay of acknowledgements of segments beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckCompression {
    /// Acknowledgements sent at once before any delay: `TCP_FASTRETRANS_THRESH`, 3.
    pub free: u32,
    /// Maximum number of withheld acknowledgements: `tcp_comp_sack_nr`, 44.
    pub held: u32,
    /// Longest delay: `tcp_comp_sack_delay_ns`, 1 ms; a twentieth of a round trip if that is less.
    pub delay: Span,
}

/// Position of a segment in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPosition {
    /// The next expected segment, without any gap.
    Next,
    /// The next expected segment, while data waits beyond a gap.
    Fills,
    /// Beyond a gap.
    Beyond,
    /// All of it had been received before.
    Old,
}

/// Properties of a segment with data or a FIN that decide about its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataArrival {
    /// Bytes of data.
    pub len: u32,
    /// Position in the stream.
    pub position: SegmentPosition,
    /// The segment has a FIN.
    pub fin: bool,
    /// The segment has PSH.
    pub push: bool,
    /// The window advertised last, in bytes from the next one expected.
    pub window: u64,
    /// An acknowledgement sent now would advertise no smaller window than the last one.
    pub window_holds: bool,
    /// The limit of the advertised window has just grown (`receive::window`).
    pub window_grew: bool,
    /// This end has sent its FIN and waits only for the peer's.
    pub closed: bool,
    /// SACK is in use.
    pub sack: bool,
    /// This end's smoothed round-trip time, once measured.
    pub rtt: Option<Span>,
    /// This end's retransmission timeout.
    pub timeout: Span,
}

/// Decision about an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckNow {
    /// Acknowledge at once.
    Now,
    /// Acknowledge by the deadline.
    Later,
    /// No change.
    None,
}

/// Acknowledgement policy of one end.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    kind: RuleState,
    clock: TimerClock,
    mss: u32,
    /// Data has arrived since the last acknowledgement.
    owed: bool,
    unacknowledged: u64,
    /// Deadline of a delayed acknowledgement.
    timer: Instant,
}

/// Rules without state, and Linux's rule with state.
#[derive(Clone, Debug)]
enum RuleState {
    Rfc(Span),
    Bsd(Span),
    Linux(Adaptive),
}

impl AckPolicy {
    /// Creates the policy of a connection with segments of at most `mss` bytes and timers on `clock`.
    pub fn new(rule: AckRule, clock: TimerClock, mss: u32) -> Self {
        Self {
            kind: match rule {
                AckRule::Rfc { delay } => RuleState::Rfc(delay),
                AckRule::Bsd { delay } => RuleState::Bsd(delay),
                AckRule::Linux {
                    quick,
                    min,
                    max,
                    compression,
                    push_ends,
                    early_write,
                } => {
                    let adaptive = Adaptive::new(min, max, quick, compression, push_ends);
                    RuleState::Linux(adaptive.writing_early(early_write))
                }
            },
            clock,
            mss,
            owed: false,
            unacknowledged: 0,
            timer: Instant::FAR_FUTURE,
        }
    }

    /// Sets the maximum size of the segments to come.
    pub fn resize(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// Returns true if [`DataArrival::window_holds`] matters for a segment of `len` bytes. Its computation is costly.
    pub const fn asks_for_window(&self, len: u32) -> bool {
        matches!(self.kind, RuleState::Linux(_)) && (self.unacknowledged > 0 || len > self.mss)
    }

    /// Handles the SYN-ACK, with `window` bytes advertised.
    pub fn connected(&mut self, now: Instant, window: u64) -> AckNow {
        let RuleState::Linux(adaptive) = &mut self.kind else {
            return AckNow::Now;
        };
        let Some(delay) = adaptive.connected(now, window) else {
            return AckNow::Now;
        };
        self.owed = true;
        self.timer = self.clock.expiry(now, delay);
        AckNow::Later
    }

    /// Handles an arriving segment.
    #[inline(always)]
    pub fn arrived(&mut self, now: Instant, arrival: &DataArrival) -> AckNow {
        if arrival.len == 0 && !arrival.fin {
            return AckNow::None;
        }
        debug_assert!(
            self.owed || self.unacknowledged == 0,
            "bytes are unacknowledged and no acknowledgement is owed"
        );
        self.owed = true;
        let in_order = matches!(
            arrival.position,
            SegmentPosition::Next | SegmentPosition::Fills
        );
        if in_order {
            self.unacknowledged += u64::from(arrival.len);
        }
        let must = arrival.fin || arrival.position != SegmentPosition::Next;
        let (now_due, delay) = match &mut self.kind {
            RuleState::Rfc(delay) => {
                let two = self.unacknowledged >= 2 * u64::from(self.mss);
                (must || two, *delay)
            }
            RuleState::Bsd(delay) => {
                let another = self.timer < Instant::FAR_FUTURE || arrival.window == 0;
                (must || another, *delay)
            }
            RuleState::Linux(adaptive) => {
                if in_order && arrival.len > 0 {
                    adaptive.learn(now, arrival, self.mss);
                }
                match adaptive.arrived(now, arrival, self.unacknowledged) {
                    AckNow::Later => {}
                    settled => return settled,
                }
                if arrival.position == SegmentPosition::Beyond {
                    return AckNow::Later;
                }
                let delay = adaptive.delay(arrival.rtt);
                let soon = self.timer <= now + delay / 4;
                (soon, delay)
            }
        };
        if now_due {
            return AckNow::Now;
        }
        let due = self.clock.expiry(now, delay);
        self.timer = self.timer.min(due);
        AckNow::Later
    }

    /// Handles a read by the application. `emptied` is true if nothing is left to read. Only Linux acknowledges for
    /// this alone; `receive::window` handles window updates.
    pub fn read(&self, emptied: bool) -> AckNow {
        match &self.kind {
            RuleState::Linux(adaptive) if self.owed => adaptive.read(emptied, self.unacknowledged),
            _ => AckNow::None,
        }
    }

    /// Deadline of an acknowledgement. Never if none waits.
    #[inline]
    pub fn deadline(&self) -> Instant {
        match &self.kind {
            RuleState::Linux(adaptive) => self.timer.min(adaptive.release()),
            RuleState::Rfc(_) | RuleState::Bsd(_) => self.timer,
        }
    }

    /// Handles a passed deadline. An acknowledgement leaves, and [`sent`](Self::sent) follows.
    pub fn expired(&mut self, now: Instant) {
        if let RuleState::Linux(adaptive) = &mut self.kind
            && self.timer <= now
        {
            adaptive.missed();
        }
    }

    /// Records that a segment with an acknowledgement has left, for any reason.
    pub fn sent(&mut self) {
        if let RuleState::Linux(adaptive) = &mut self.kind {
            adaptive.sent(self.owed);
        }
        self.owed = false;
        self.unacknowledged = 0;
        self.timer = Instant::FAR_FUTURE;
    }

    /// Records that a segment with data has left.
    pub fn sent_data(&mut self, now: Instant) {
        if let RuleState::Linux(adaptive) = &mut self.kind {
            adaptive.sent_data(now);
        }
    }
}

#[cfg(test)]
mod tests;

//! When an acknowledgement is sent: at once, later, or not at all.
//!
//! What it says (SACK blocks, the window) is left to others; so are acknowledgements that
//! protect a connection (RFC 5961), which are always sent at once. Linux's rule is a file of its
//! own, `adaptive`.

mod adaptive;

use posthaste_units::{Instant, Span};

use crate::Clock;
use adaptive::Adaptive;

/// A stack's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// RFC 5681, section 4.2, and RFC 9293, section 3.8.6.3: at least every second full segment,
    /// and whatever fills or shows a gap, at once; the rest within `delay`.
    Rfc {
        /// How long one waits; less than 500 ms.
        delay: Span,
    },
    /// BSD (FreeBSD 6 and 14, `DELAY_ACK` in tcp_input.c): who arrives while another waits is
    /// acknowledged at once, whatever its length.
    Bsd {
        /// How long one waits: `net.inet.tcp.delacktime`.
        delay: Span,
    },
    /// Linux (`__tcp_ack_snd_check` in tcp_input.c, `tcp_send_delayed_ack` in tcp_output.c):
    /// every segment at once for a while, later by an estimate of the gaps between segments.
    Linux {
        /// Most segments acknowledged at once from the first segment on, after a pause of a
        /// timeout, and after a duplicate: `TCP_MAX_QUICKACKS`, 16. Half a window of segments
        /// where that is fewer.
        quick: u32,
        /// Shortest delay: `TCP_DELACK_MIN`, 40 ms.
        min: Span,
        /// Longest delay: `TCP_DELACK_MAX`, 200 ms.
        max: Span,
        /// Fewer acknowledgements of segments beyond a gap.
        compression: Option<Compression>,
        /// A full segment with PSH is acknowledged once everything has been read (since 6.7), as a
        /// small one always is.
        push_ends: bool,
    },
}

/// Linux since 4.18: acknowledgements of segments beyond a gap are held back for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Sent at once before that: `TCP_FASTRETRANS_THRESH`, 3.
    pub free: u32,
    /// Held back at most: `tcp_comp_sack_nr`, 44.
    pub held: u32,
    /// For at most: `tcp_comp_sack_delay_ns`, 1 ms; a twentieth of a round trip where that is less.
    pub delay: Span,
}

/// Where a segment falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the next one, and nothing waits beyond a gap.
    Next,
    /// It is the next one, while something waits beyond a gap.
    Fills,
    /// Beyond a gap.
    Beyond,
    /// All of it was there already.
    Old,
}

/// What the policy must know of a segment with data or a FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Bytes of data.
    pub len: u32,
    /// Where it falls.
    pub place: Place,
    /// It ends the stream.
    pub fin: bool,
    /// It says PSH.
    pub push: bool,
    /// The window offered last, in bytes from the next one expected.
    pub window: u64,
    /// An acknowledgement sent now would offer no less than the last one did.
    pub window_holds: bool,
    /// The offer has just grown (`receive::window`).
    pub window_grew: bool,
    /// This end has sent its FIN: it waits for nothing but the peer's.
    pub closed: bool,
    /// SACK is in use.
    pub sack: bool,
    /// This end's smoothed round-trip time, once it has one.
    pub rtt: Option<Span>,
    /// This end's retransmission timeout.
    pub timeout: Span,
}

/// What to do about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckNow {
    /// Acknowledge at once.
    Now,
    /// Acknowledge by the deadline.
    Later,
    /// Nothing new to do.
    None,
}

/// When this end acknowledges.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    kind: Kind,
    clock: Clock,
    mss: u32,
    /// Something has come that no acknowledgement has covered.
    owed: bool,
    unacknowledged: u64,
    /// When an acknowledgement that waits must leave.
    timer: Instant,
}

/// Rules without and with a memory.
#[derive(Clone, Debug)]
enum Kind {
    Rfc(Span),
    Bsd(Span),
    Linux(Adaptive),
}

impl AckPolicy {
    /// A connection's, for segments of at most `mss` bytes, with timers that run by `clock`.
    pub fn new(rule: AckRule, clock: Clock, mss: u32) -> Self {
        Self {
            kind: match rule {
                AckRule::Rfc { delay } => Kind::Rfc(delay),
                AckRule::Bsd { delay } => Kind::Bsd(delay),
                AckRule::Linux {
                    quick,
                    min,
                    max,
                    compression,
                    push_ends,
                } => Kind::Linux(Adaptive::new((min, max), quick, compression, push_ends)),
            },
            clock,
            mss,
            owed: false,
            unacknowledged: 0,
            timer: Instant::FAR_FUTURE,
        }
    }

    /// The segments to come are of at most `mss` bytes.
    pub fn resize(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// Whether [`Arrival::window_holds`] matters for so many bytes: it takes some reckoning.
    pub const fn asks_for_window(&self, len: u32) -> bool {
        matches!(self.kind, Kind::Linux(_)) && (self.unacknowledged > 0 || len > self.mss)
    }

    /// A segment has come.
    #[inline(always)]
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) -> AckNow {
        if arrival.len == 0 && !arrival.fin {
            return AckNow::None;
        }
        self.owed = true;
        let in_order = matches!(arrival.place, Place::Next | Place::Fills);
        if in_order {
            self.unacknowledged += u64::from(arrival.len);
        }
        let must = arrival.fin || arrival.place != Place::Next;
        let (now_due, delay) = match &mut self.kind {
            Kind::Rfc(delay) => {
                let two = self.unacknowledged >= 2 * u64::from(self.mss);
                (must || two, *delay)
            }
            Kind::Bsd(delay) => {
                let another = self.timer < Instant::FAR_FUTURE || arrival.window == 0;
                (must || another, *delay)
            }
            Kind::Linux(adaptive) => {
                if in_order && arrival.len > 0 {
                    adaptive.learn(now, arrival, self.mss);
                }
                match adaptive.arrived(now, arrival, self.unacknowledged) {
                    AckNow::Later => {}
                    settled => return settled,
                }
                if arrival.place == Place::Beyond {
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

    /// The application has read; `emptied` says whether nothing is left to read. Only Linux
    /// acknowledges for this alone; window updates are `receive::window`'s.
    pub fn read(&self, emptied: bool) -> AckNow {
        match &self.kind {
            Kind::Linux(adaptive) if self.owed => adaptive.read(emptied, self.unacknowledged),
            _ => AckNow::None,
        }
    }

    /// When an acknowledgement must leave; never, if none waits.
    #[inline]
    pub fn deadline(&self) -> Instant {
        match &self.kind {
            Kind::Linux(adaptive) => self.timer.min(adaptive.release()),
            Kind::Rfc(_) | Kind::Bsd(_) => self.timer,
        }
    }

    /// The deadline has passed: an acknowledgement leaves, and [`sent`](Self::sent) follows.
    pub fn expired(&mut self, now: Instant) {
        if let Kind::Linux(adaptive) = &mut self.kind
            && self.timer <= now
        {
            adaptive.missed();
        }
    }

    /// A segment with an acknowledgement has left, for whatever reason.
    pub fn sent(&mut self) {
        if let Kind::Linux(adaptive) = &mut self.kind {
            adaptive.sent(self.owed);
        }
        self.owed = false;
        self.unacknowledged = 0;
        self.timer = Instant::FAR_FUTURE;
    }

    /// A segment with data has left.
    pub fn sent_data(&mut self, now: Instant) {
        if let Kind::Linux(adaptive) = &mut self.kind {
            adaptive.sent_data(now);
        }
    }
}

#[cfg(test)]
mod tests;

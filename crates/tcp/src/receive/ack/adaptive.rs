//! Linux's memory of a connection's arrivals (`icsk_ack`): how quickly to acknowledge, and for how
//! long to wait.

use posthaste_units::{Instant, Span};

use super::{AckNow, Arrival, Compression, Place};

/// What Linux takes for a full segment before it has seen one: `TCP_MIN_RCVMSS`.
const FULL_AT_FIRST: u32 = 536;
/// The longest delay where nobody answers: half a second.
const LONGEST: Span = Span::from_millis(500);

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    min: Span,
    max: Span,
    most_quick: u32,
    compression: Option<Compression>,
    push_ends: bool,
    /// Acknowledgements at once that are left.
    quick: u32,
    /// This end answers: its data carry the acknowledgements.
    pingpong: bool,
    /// An estimate of the gaps between segments; zero before the first.
    delay: Span,
    last: Instant,
    /// The peer's full segment, as far as one can see, and the last that was shorter.
    full: u32,
    short: u32,
    /// Segments since the last acknowledgement that look like the end of something.
    ends: u32,
    timeout: Span,
    /// Acknowledgements of one and the same gap: sent, held back, and until when.
    repeated: u32,
    held: u32,
    release: Instant,
}

impl Adaptive {
    pub(super) fn new(
        (min, max): (Span, Span),
        most_quick: u32,
        compression: Option<Compression>,
        push_ends: bool,
    ) -> Self {
        Self {
            min,
            max,
            most_quick,
            compression,
            push_ends,
            quick: 0,
            pingpong: false,
            delay: Span::ZERO,
            last: Instant::ORIGIN,
            full: FULL_AT_FIRST,
            short: 0,
            ends: 0,
            timeout: Span::ZERO,
            repeated: 0,
            held: 0,
            release: Instant::FAR_FUTURE,
        }
    }

    /// What a segment in order teaches (`tcp_event_data_recv`, `tcp_measure_rcv_mss`).
    pub(super) fn learn(&mut self, now: Instant, arrival: &Arrival, mss: u32) {
        self.repeated = 0;
        let len = arrival.len;
        let short = std::mem::take(&mut self.short);
        if len >= self.full.min(mss) {
            self.full = len.min(mss);
            self.ends += u32::from(self.push_ends && arrival.push);
        } else if len >= FULL_AT_FIRST && len == short {
            self.full = len;
        } else {
            self.short = len;
            self.ends += 1;
        }
        let gap = now.since(self.last);
        if self.delay.is_zero() {
            self.refill(arrival.window);
            self.delay = self.min;
        } else if gap <= self.min / 2 {
            self.delay = self.delay / 2 + self.min / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(arrival.timeout);
        } else if gap > arrival.timeout {
            self.refill(arrival.window);
        }
        self.last = now;
        if arrival.window_grew {
            self.quick |= 1;
        }
    }

    /// Half a window of segments at once, two at least (`tcp_incr_quickack`).
    fn refill(&mut self, window: u64) {
        let half = match window / (2 * u64::from(self.full.max(1))) {
            0 => 2,
            half => half,
        };
        self.quick = self.quick.max(half.min(u64::from(self.most_quick)) as u32);
    }

    /// Whether to acknowledge at once (`__tcp_ack_snd_check`), so many bytes being owed.
    pub(super) fn arrived(&mut self, now: Instant, arrival: &Arrival, owed: u64) -> AckNow {
        self.timeout = arrival.timeout;
        if arrival.place == Place::Old {
            self.refill(arrival.window);
            self.pingpong = false;
            self.delay = self.min;
            return AckNow::Now;
        }
        let in_order = arrival.place != Place::Beyond;
        self.pingpong |= arrival.fin && in_order;
        let quickly = self.quick > 0 && !self.pingpong;
        let two = owed > u64::from(self.full) && arrival.window_holds;
        let last = arrival.fin && arrival.closed && in_order;
        match arrival.place {
            Place::Fills => AckNow::Now,
            _ if quickly || two || last => AckNow::Now,
            Place::Beyond => self.beyond(now, arrival),
            Place::Next | Place::Old => AckNow::Later,
        }
    }

    /// A segment beyond a gap: at once, or held back for a moment.
    fn beyond(&mut self, now: Instant, arrival: &Arrival) -> AckNow {
        let Some(rule) = self.compression else {
            return AckNow::Now;
        };
        if !arrival.sack || self.held >= rule.held {
            return AckNow::Now;
        }
        if self.repeated < rule.free {
            self.repeated += 1;
            return AckNow::Now;
        }
        self.held += 1;
        let delay = arrival
            .rtt
            .map_or(rule.delay, |rtt| rule.delay.min(rtt / 20));
        if self.release == Instant::FAR_FUTURE {
            self.release = now + delay;
        }
        AckNow::Later
    }

    /// For how long to wait (`tcp_send_delayed_ack`).
    pub(super) fn delay(&self, rtt: Option<Span>) -> Span {
        let answers = self.pingpong || self.ends > 0;
        let most = if answers { self.max } else { LONGEST };
        let most = rtt.map_or(most, |rtt| most.min(rtt.max(self.min)));
        self.delay.min(most).max(self.min).min(self.max)
    }

    /// Whether reading is worth an acknowledgement (`tcp_cleanup_rbuf`).
    pub(super) fn read(&self, emptied: bool, owed: u64) -> AckNow {
        let ended = self.ends > 1 || (self.ends == 1 && !self.pingpong);
        if owed > u64::from(self.full) || (emptied && ended) {
            AckNow::Now
        } else {
            AckNow::None
        }
    }

    /// Until when acknowledgements are held back.
    pub(super) const fn release(&self) -> Instant {
        self.release
    }

    /// No answer carried the acknowledgement in time: the gaps are longer than they seemed, or
    /// this end does not answer after all (`tcp_delack_timer_handler`).
    pub(super) fn missed(&mut self) {
        if self.pingpong {
            self.pingpong = false;
            self.delay = self.min;
        } else {
            self.delay = (self.delay * 2).min(self.timeout);
        }
    }

    /// An acknowledgement has left; `owed` where one was.
    pub(super) fn sent(&mut self, owed: bool) {
        if owed && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = self.min;
            }
        }
        self.ends = 0;
        self.held = 0;
        self.release = Instant::FAR_FUTURE;
    }

    /// Data have left: soon after something has come, this end answers (`tcp_event_data_sent`).
    pub(super) fn sent_data(&mut self, now: Instant) {
        if now.since(self.last) < self.delay {
            self.pingpong = true;
        }
    }
}

//! Linux's state about a connection's arrivals (`icsk_ack`): speed of acknowledgement, and length of the delay.

use posthaste_units::{Instant, Span};

use super::{AckCompression, AckNow, DataArrival, SegmentPosition};

/// Size of a full segment before Linux has seen one: `TCP_MIN_RCVMSS`.
const FULL_AT_FIRST: u32 = 536;
/// Longest delay while no end of a message is expected: half a second.
const LONGEST: Span = Span::from_millis(500);

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    min: Span,
    max: Span,
    most_quick: u32,
    compression: Option<AckCompression>,
    push_ends: bool,
    early_write: bool,
    /// Remaining immediate acknowledgements.
    quick: u32,
    /// This end sends replies: its data carries the acknowledgements.
    pingpong: bool,
    /// Estimate of the gaps between segments. Zero before the first.
    delay: Span,
    last: Instant,
    /// Estimated size of the peer's full segment, and of the last shorter segment.
    full: u32,
    short: u32,
    /// Segments since the last acknowledgement that look like the end of a message.
    ends: u32,
    timeout: Span,
    /// Acknowledgements of the same gap: the number sent, the number withheld, and the end of the delay.
    repeated: u32,
    held: u32,
    release: Instant,
}

impl Adaptive {
    pub(super) fn new(
        min: Span,
        max: Span,
        most_quick: u32,
        compression: Option<AckCompression>,
        push_ends: bool,
    ) -> Self {
        Self {
            min,
            max,
            most_quick,
            compression,
            push_ends,
            early_write: false,
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

    /// The state of an end whose program writes before the connection is established, or not.
    pub(super) fn writing_early(self, early_write: bool) -> Self {
        Self {
            early_write,
            ..self
        }
    }

    /// Handles the SYN-ACK. Returns the longest delay of its acknowledgement, or `None` if it is due at once
    /// (`tcp_rcv_synsent_state_process`).
    pub(super) fn connected(&mut self, now: Instant, window: u64) -> Option<Span> {
        self.early_write.then(|| {
            self.last = now;
            self.delay = self.min;
            self.refill(window);
            self.max
        })
    }

    /// Updates the state from a segment in order (`tcp_event_data_recv`, `tcp_measure_rcv_mss`).
    pub(super) fn learn(&mut self, now: Instant, arrival: &DataArrival, mss: u32) {
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
        let gap = now.saturating_since(self.last);
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

    /// Allows half a window of immediate acknowledgements, at least two (`tcp_incr_quickack`).
    fn refill(&mut self, window: u64) {
        let half = match window / (2 * u64::from(self.full.max(1))) {
            0 => 2,
            half => half,
        };
        self.quick = self.quick.max(half.min(u64::from(self.most_quick)) as u32);
    }

    /// Decides between an acknowledgement now and later (`__tcp_ack_snd_check`) with `owed` bytes unacknowledged.
    pub(super) fn arrived(&mut self, now: Instant, arrival: &DataArrival, owed: u64) -> AckNow {
        self.timeout = arrival.timeout;
        if arrival.position == SegmentPosition::Old {
            self.refill(arrival.window);
            self.pingpong = false;
            self.delay = self.min;
            return AckNow::Now;
        }
        let in_order = arrival.position != SegmentPosition::Beyond;
        self.pingpong |= arrival.fin && in_order;
        let quickly = self.quick > 0 && !self.pingpong;
        let two = owed > u64::from(self.full) && arrival.window_holds;
        let last = arrival.fin && arrival.closed && in_order;
        match arrival.position {
            SegmentPosition::Fills => AckNow::Now,
            _ if quickly || two || last => AckNow::Now,
            SegmentPosition::Beyond => self.beyond(now, arrival),
            SegmentPosition::Next | SegmentPosition::Old => AckNow::Later,
        }
    }

    /// Handles a segment beyond a gap: acknowledges at once, or after a short delay.
    fn beyond(&mut self, now: Instant, arrival: &DataArrival) -> AckNow {
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

    /// Returns the delay of an acknowledgement (`tcp_send_delayed_ack`).
    pub(super) fn delay(&self, rtt: Option<Span>) -> Span {
        let answers = self.pingpong || self.ends > 0;
        let most = if answers { self.max } else { LONGEST };
        let most = rtt.map_or(most, |rtt| most.min(rtt.max(self.min)));
        debug_assert!(
            self.min <= self.max,
            "the shortest delay exceeds the longest"
        );
        self.delay.min(most).max(self.min).min(self.max)
    }

    /// Decides on an acknowledgement after a read (`tcp_cleanup_rbuf`).
    pub(super) fn read(&self, emptied: bool, owed: u64) -> AckNow {
        let ended = self.ends > 1 || (self.ends == 1 && !self.pingpong);
        if owed > u64::from(self.full) || (emptied && ended) {
            AckNow::Now
        } else {
            AckNow::None
        }
    }

    /// End of the delay of withheld acknowledgements.
    pub(super) const fn release(&self) -> Instant {
        self.release
    }

    /// Handles an expired delay without data that carried the acknowledgement: the gaps are longer than estimated, or
    /// this end sends no replies (`tcp_delack_timer_handler`).
    pub(super) fn missed(&mut self) {
        if self.pingpong {
            self.pingpong = false;
            self.delay = self.min;
        } else {
            self.delay = (self.delay * 2).min(self.timeout);
        }
    }

    /// Records that an acknowledgement has left. `owed` is true if one was owed.
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

    /// Records that data has left. Data sent soon after an arrival mark this end as one that sends replies
    /// (`tcp_event_data_sent`).
    pub(super) fn sent_data(&mut self, now: Instant) {
        if now.saturating_since(self.last) < self.delay {
            self.pingpong = true;
        }
    }
}

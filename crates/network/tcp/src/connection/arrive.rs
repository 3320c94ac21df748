//! Processing of an arriving segment after both SYNs are known (RFC 9293, section 3.10.7.4): validation,
//! acknowledgement, then data.

use std::ops::Range;

use posthaste_units::Instant;

use super::Connection;
use super::open::answer_with_reset;
use crate::receive::{Incoming, OtherHalf};
use crate::send::Ack;
use crate::{ConnectionEnd, Offset, Parity, Segment, TcpState, unwrap};

impl Connection {
    pub(super) fn arrive_nowhere(&mut self, segment: &Segment) {
        self.counters.refused.no_connection += 1;
        if !segment.rst {
            self.reset = Some(answer_with_reset(segment));
        }
    }

    pub(super) fn arrive(&mut self, now: Instant, segment: &Segment) -> Option<Range<Offset>> {
        let start = self.believe(now, segment)?;
        let start = start + u64::from(segment.syn);
        let Some(ack) = segment.ack else {
            self.counters.refused.no_ack += 1;
            return None;
        };
        let needs_ack = self.profile.strictness.timestamp_needs_ack;
        if !needs_ack {
            self.negotiated
                .remember_timestamp(now, segment, start, self.receiver.acknowledged);
        }
        if self.state == TcpState::SynReceived {
            if ack != crate::wrap(self.negotiated.isn, 1) {
                self.counters.refused.ack_of_unsent += 1;
                self.reset = Some(answer_with_reset(segment));
                return None;
            }
            let window = self.negotiated.window(segment);
            self.establish(now, segment, window);
        } else if !self.take_ack(now, segment, ack, start) {
            return None;
        }
        if needs_ack {
            self.negotiated
                .remember_timestamp(now, segment, start, self.receiver.acknowledged);
        }
        let taken = if let Some(parity) = segment.options.parity {
            self.take_parity(now, segment, parity, start)
        } else if segment.len > 0 || segment.fin {
            self.take_data(now, segment, start)
        } else {
            None
        };
        self.follow(now);
        taken
    }

    /// Returns the offset of a segment that passes validation. Answers the others.
    fn believe(&mut self, now: Instant, segment: &Segment) -> Option<Offset> {
        let next = self.receiver.next;
        let Some(start) = unwrap(self.negotiated.peer_isn?, segment.seq, next) else {
            return self.out_of_window(now, segment);
        };
        let stamped = segment.options.timestamps.is_some() || !self.negotiated.timestamps;
        if !stamped && self.profile.strictness.every_timestamp && !segment.rst {
            self.counters.refused.no_timestamp += 1;
            return None;
        }
        if self.negotiated.is_old(now, segment) {
            self.counters.refused.paws += 1;
            self.answer(now, segment);
            return None;
        }
        if start != next && !self.is_in_window(now, segment, start) {
            return None;
        }
        if segment.rst {
            self.take_reset(now, start, next + self.receiver.offered());
            return None;
        }
        if segment.syn {
            return self.take_syn(now, segment, start);
        }
        Some(start)
    }

    /// Returns true if the window accepts a segment that is not the next expected one. Answers a segment outside the
    /// window.
    fn is_in_window(&mut self, now: Instant, segment: &Segment, start: Offset) -> bool {
        let next = self.receiver.next;
        let end = start + u64::from(segment.places());
        let edge = next + self.receiver.offered();
        // An acknowledgement is acceptable even in a closed window (RFC 9293, section 3.10.7.4).
        let beyond = start > edge || (start == edge && segment.places() > 0 && edge > next);
        let is_old = end < self.receiver.acknowledged;
        if is_old && segment.len > 0 && end > start && !segment.rst {
            // All of the data was received before. The acknowledgement is even older.
            self.take_data(now, segment, start);
        } else if is_old || beyond {
            self.out_of_window(now, segment);
        } else {
            return true;
        }
        false
    }

    fn take_reset(&mut self, now: Instant, start: Offset, edge: Offset) {
        let rules = self.profile.strictness;
        let exact = start == self.receiver.next;
        let demanded = rules.rfc5961 || (rules.exact_reset && self.state == TcpState::Established);
        if exact || (!demanded && start < edge.max(self.receiver.next + 1)) {
            if self.state == TcpState::TimeWait {
                self.finish(ConnectionEnd::Finished);
            } else {
                self.finish(ConnectionEnd::Reset);
            }
            return;
        }
        self.counters.refused.rst += 1;
        if rules.rfc5961 {
            self.challenge(now);
        }
    }

    fn take_syn(&mut self, now: Instant, segment: &Segment, start: Offset) -> Option<Offset> {
        if start == 0 && self.state == TcpState::SynReceived {
            if segment.ack.is_some() {
                return Some(start);
            }
            self.opening.send |= self.may_answer_empty(now);
            return None;
        }
        self.counters.refused.syn += 1;
        if start == 0 || self.profile.strictness.rfc5961 {
            self.challenge(now);
        } else {
            self.reset = Some(self.bare_reset());
            self.finish(ConnectionEnd::Reset);
        }
        None
    }

    /// Returns false if the segment is refused because of its acknowledgement number.
    fn take_ack(&mut self, now: Instant, segment: &Segment, ack: u32, start: Offset) -> bool {
        let una = self.sender.sequence().una;
        let number = unwrap(self.negotiated.isn, ack, una).filter(|number| {
            *number >= una || una - *number <= self.sender.peer_largest_window().max(1)
        });
        let Some(number) = number else {
            self.counters.refused.ack_too_old += 1;
            if self.profile.strictness.rfc5961 {
                self.challenge(now);
            }
            return false;
        };
        if number > self.sender.sequence().shown() {
            self.counters.refused.ack_of_unsent += 1;
            if self.profile.strictness.answers.to_unsent {
                self.challenge(now);
            }
            return false;
        }
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        if self.receiver.sack && !segment.options.sack.is_empty() {
            for block in segment.options.sack.as_slice() {
                let start = unwrap(self.negotiated.isn, block[0], una);
                let end = unwrap(self.negotiated.isn, block[1], una);
                if let (Some(start), Some(end)) = (start, end)
                    && start < end
                {
                    blocks[count] = (start, end);
                    count += 1;
                }
            }
        }
        let ack = Ack {
            number,
            window: self.negotiated.window(segment),
            seq: start,
            carries: segment.places() > 0,
            blocks: &blocks[..count],
            echo: if number > una || self.sender.watches_echoes() {
                self.negotiated.echo_of(now, segment)
            } else {
                None
            },
        };
        self.sender.acknowledged(now, &ack, &mut self.counters);
        true
    }

    fn take_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        start: Offset,
    ) -> Option<Range<Offset>> {
        let incoming = Incoming {
            start,
            len: segment.len,
            fin: segment.fin,
            push: segment.psh,
        };
        let other = OtherHalf {
            closed: self.sender.sequence().fin_sent(),
            rtt: self.sender.rtt().smoothed(),
            timeout: self.sender.timeout(),
            echo: if self.receiver.measures(segment) {
                self.negotiated.echo_of(now, segment)
            } else {
                None
            },
        };
        self.receiver.take(now, incoming, other, &mut self.counters)
    }

    /// Handles parity over the data before `end`: restores the missing segment if exactly one is missing.
    fn take_parity(
        &mut self,
        now: Instant,
        segment: &Segment,
        parity: Parity,
        end: Offset,
    ) -> Option<Range<Offset>> {
        let start = end.checked_sub(u64::from(parity.covered))?;
        let fin = self.negotiated.agreed.parity && parity.fin;
        let hole = self.receiver.only_hole(start, end).filter(|hole| {
            let fin = fin && hole.end == end;
            self.negotiated.agreed.parity
                && hole.end - hole.start <= u64::from(segment.len) + u64::from(fin)
        })?;
        let fin = fin && hole.end == end;
        debug_assert!(hole.start < hole.end, "parity restores an empty segment");
        self.counters.restored += 1;
        let restored = Segment {
            len: (hole.end - hole.start - u64::from(fin)) as u32,
            fin,
            ..*segment
        };
        let taken = self.take_data(now, &restored, hole.start);
        self.receiver.owed_now = true;
        taken
    }
}

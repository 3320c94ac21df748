//! Answers to segments that fail validation, and their rate limit. Without a limit, two ends that both reject the
//! other's acknowledgement would exchange answers for ever (RFC 5961, section 7).

use posthaste_units::Instant;

use super::Connection;
use crate::profile::Answers;
use crate::{EndpointCounters, Offset, Segment};

/// Challenge ACKs sent in the current interval, and the end of that interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    count: u32,
    until: Instant,
}

impl Challenges {
    /// Returns true, and counts the answer, if one more is within the profile's limit.
    fn allow(&mut self, now: Instant, rules: &Answers, counters: &mut EndpointCounters) -> bool {
        let Some(limit) = rules.limit else {
            return true;
        };
        if now >= self.until {
            *self = Self {
                count: 0,
                until: now + limit.within,
            };
        }
        debug_assert!(
            self.count <= limit.most,
            "more challenges than the limit allows"
        );
        let may = self.count < limit.most;
        if may {
            self.count += 1;
        } else {
            counters.unanswered += 1;
        }
        may
    }
}

impl Connection {
    fn may_challenge(&mut self, now: Instant) -> bool {
        let rules = &self.profile.strictness.answers;
        self.challenges.allow(now, rules, &mut self.counters)
    }

    /// Schedules a challenge ACK if the limit allows one. A legitimate peer then repeats its request.
    pub(super) fn challenge(&mut self, now: Instant) {
        self.receiver.owed_now |= self.may_challenge(now);
    }

    /// Returns true if a segment without data may be answered.
    pub(super) fn may_answer_empty(&mut self, now: Instant) -> bool {
        !self.profile.strictness.answers.limits_empty || self.may_challenge(now)
    }

    /// Answers a segment with a wrong sequence number or timestamp.
    pub(super) fn answer(&mut self, now: Instant, segment: &Segment) {
        let has_data = segment.places() > 0 && !segment.syn;
        self.receiver.owed_now |= has_data || self.may_answer_empty(now);
    }

    pub(super) fn out_of_window(&mut self, now: Instant, segment: &Segment) -> Option<Offset> {
        self.counters.refused.out_of_window += 1;
        if !segment.rst {
            self.answer(now, segment);
        }
        None
    }
}

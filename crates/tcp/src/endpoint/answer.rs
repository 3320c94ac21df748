//! Answers to what is not believed, and how many a profile allows: two ends that both take the
//! other's acknowledgement for wrong would exchange them for ever (RFC 5961, section 7).

use posthaste_units::Instant;

use super::Endpoint;
use crate::{Offset, Segment};

/// Challenges sent since a span began, and when it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    count: u32,
    until: Instant,
}

impl Endpoint {
    /// Whether one more answer is within the profile's limit; counts it where it is.
    fn may_challenge(&mut self, now: Instant) -> bool {
        let Some(limit) = self.profile.strictness.answers.limit else {
            return true;
        };
        if now >= self.challenges.until {
            self.challenges = Challenges {
                count: 0,
                until: now + limit.within,
            };
        }
        let may = self.challenges.count < limit.most;
        if may {
            self.challenges.count += 1;
        } else {
            self.counters.unanswered += 1;
        }
        may
    }

    /// A challenge: the peer is to say again what it means, if it was the peer.
    pub(super) fn challenge(&mut self, now: Instant) {
        self.receiver.owed_now |= self.may_challenge(now);
    }

    /// Whether a segment without data may have an answer.
    pub(super) fn may_answer_empty(&mut self, now: Instant) -> bool {
        !self.profile.strictness.answers.limits_empty || self.may_challenge(now)
    }

    /// The answer to a segment whose place or time is wrong.
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

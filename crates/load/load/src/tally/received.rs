//! Checks of a tally that another process has sent.

use thiserror::Error;

use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::tally::{LONGEST_EXPLANATION, LoadTally};

/// Reasons why a tally from elsewhere cannot be added.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TallyError {
    /// It is of another plan.
    #[error("it has {0} steps and {1} requests of a mix, which are not those of the plan")]
    Parts(usize, usize),
    /// A count above 2^48.
    #[error("the count {0} is above 2^48")]
    Count(u64),
    /// Counts that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Highest count that is accepted from elsewhere. Sums of 2^16 accepted tallies do not overflow.
const MOST: u64 = 1 << 48;
/// Maximum number of attempts of a request that is accepted from elsewhere.
const MOST_ATTEMPTS: usize = 1 << 16;
/// Maximum number of addresses of servers.
const MOST_ADDRESSES: usize = 1 << 16;

impl LoadTally {
    /// Checks a tally from elsewhere: it is one of this plan, and it can be added.
    pub fn check(&self, plan: &Plan) -> Result<(), TallyError> {
        let expected = Self::for_plan(plan);
        if self.steps.len() != expected.steps.len()
            || self.requests.len() != expected.requests.len()
        {
            return Err(TallyError::Parts(self.steps.len(), self.requests.len()));
        }
        if let Some(count) = self.counts().find(|count| *count > MOST) {
            return Err(TallyError::Count(count));
        }
        let contradictions = [
            (
                self.ok.distribution().censored() > 0,
                "a good reply has no response time",
            ),
            (
                self.responses() != self.outcomes.total(),
                "response times and outcomes differ in number",
            ),
            (
                self.attempts.ended() != self.outcomes.total(),
                "requests by attempts and outcomes differ in number",
            ),
            (
                self.served > self.completed,
                "more good replies than complete ones",
            ),
            (
                self.attempts.requests.len() > MOST_ATTEMPTS,
                "a request has too many attempts",
            ),
            (
                self.addresses.len() > MOST_ADDRESSES,
                "there are too many addresses",
            ),
            (
                self.reasons
                    .values()
                    .any(|one| one.text.len() > LONGEST_EXPLANATION),
                "an explanation is too long",
            ),
        ];
        first_of(&contradictions)
    }

    /// Response times, known or not.
    fn responses(&self) -> u64 {
        self.ok.distribution().count() + self.rest.distribution().count()
    }

    /// Checks the sum of all seconds of a run, or of a share of it: each intended request has one outcome, one response
    /// time and a number of attempts.
    pub fn check_whole(&self, plan: &Plan) -> Result<(), TallyError> {
        let ended = [Outcome::Ok, Outcome::GrpcError].map(|one| self.attempts.outcomes[one]);
        let contradictions = [
            (
                self.intended != self.outcomes.total(),
                "intended requests and outcomes differ",
            ),
            (
                self.responses() != self.outcomes.total(),
                "response times and outcomes differ",
            ),
            (
                !self.attempts.add_up_to(self.intended),
                "attempts of requests and outcomes of attempts differ",
            ),
            (
                plan.events.is_some()
                    && self.events.first.distribution().count() != self.outcomes.total(),
                "times of first events and outcomes differ",
            ),
            (
                plan.has_calls() && self.grpc.total() != ended.iter().sum::<u64>(),
                "statuses of calls and outcomes differ",
            ),
        ];
        first_of(&contradictions)
    }

    /// Counts whose sum over tallies must not overflow.
    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let parts = self.steps.iter().chain(&self.requests);
        let of_parts = parts.flat_map(|part| {
            let outcomes = part.outcomes.iter().map(|(_, count)| count);
            outcomes.chain([part.completed, part.served, part.attempts])
        });
        let own = [
            self.intended,
            self.warm_up,
            self.unbegun,
            self.overdue,
            self.sent,
            self.completed,
            self.served,
            self.connections,
            self.reused_resets,
            self.bytes_sent,
            self.bytes_received,
            self.attempts.sent,
            self.decoded.replies,
            self.decoded.bytes_coded,
            self.decoded.bytes,
            self.events.events,
            self.events.at_once,
            self.events.with_end_mark,
            self.events.without_end_mark,
            self.quotes.used,
            self.quotes.refused,
            self.quotes.unreadable,
        ];
        let addresses = self.addresses.values();
        let addresses = addresses.flat_map(|counts| [counts.connections, counts.failed]);
        let outcomes = self.outcomes.iter().chain(self.attempts.outcomes.iter());
        own.into_iter()
            .chain(self.bytes_in_time)
            .chain(outcomes.map(|(_, count)| count))
            .chain(self.attempts.requests.iter().copied())
            .chain(self.statuses.values().copied())
            .chain(addresses)
            .chain(self.grpc.counts())
            .chain(self.streams.counts())
            .chain(of_parts)
    }
}

fn first_of(contradictions: &[(bool, &'static str)]) -> Result<(), TallyError> {
    match contradictions.iter().find(|(is_there, _)| *is_there) {
        Some((_, contradiction)) => Err(TallyError::Contradiction(contradiction)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_is_bounded_and_stays_text() {
        let mut tally = LoadTally::for_plan(&crate::testing::plan());
        tally.explain(Outcome::GrpcError, (7, 1), || {
            "é".repeat(LONGEST_EXPLANATION)
        });
        tally.explain(Outcome::Reset, (7, 1), || format!("x{}", "é".repeat(5_000)));
        tally.explain(Outcome::Refused, (7, 1), || "short".to_owned());
        let lengths = tally.reasons.values().map(|one| one.text.len());
        let mut lengths: Vec<usize> = lengths.collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [5, LONGEST_EXPLANATION - 1, LONGEST_EXPLANATION]);
        let plan = crate::testing::plan();
        assert_eq!(tally.check(&plan), Ok(()));
    }
}

//! Counts of attempts. A request has one attempt, and with retries several.
//!
//! An attempt has an outcome of its own. One that could not be sent counts too, so that each request has at least one.

use posthaste_stats::Histogram;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcomes;

/// The attempts of the requests that became due in the measured time.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempts {
    /// Attempts by outcome. The last attempt of a request has the outcome of the request, unless the run was stopped
    /// while the request waited for its next attempt.
    pub outcomes: Outcomes,
    /// Requests by number of attempts: with one, with two, and so on.
    pub requests: Vec<u64>,
    /// Attempts sent in the measured time, whenever their requests were due.
    pub sent: u64,
    /// End of the back-off to sent: the generator's own lateness with retries.
    pub retry_lateness: Histogram,
}

impl Attempts {
    /// All attempts.
    pub fn total(&self) -> u64 {
        self.outcomes.total()
    }

    /// Requests with more than one attempt.
    pub fn retried(&self) -> u64 {
        self.requests.iter().skip(1).sum()
    }

    /// Counts a request that ended after this number of attempts.
    pub(crate) fn count_request(&mut self, attempts: u32) {
        self.count_requests(attempts, 1);
    }

    /// Counts several requests that ended after this number of attempts each.
    pub(crate) fn count_requests(&mut self, attempts: u32, requests: u64) {
        debug_assert!(attempts > 0, "a request has an attempt");
        let index = attempts as usize - 1;
        if self.requests.len() <= index {
            self.requests.resize(index + 1, 0);
        }
        self.requests[index] += requests;
    }

    /// Removes all counts and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.outcomes = Outcomes::default();
        self.requests.clear();
        self.sent = 0;
        self.retry_lateness.clear();
    }

    /// Adds the attempts of another loop or second.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        let length = self.requests.len().max(other.requests.len());
        self.requests.resize(length, 0);
        for (mine, theirs) in self.requests.iter_mut().zip(&other.requests) {
            *mine += theirs;
        }
        self.sent += other.sent;
        self.retry_lateness.merge(&other.retry_lateness);
    }

    /// Requests that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.requests.iter().copied().fold(0, u64::saturating_add)
    }

    /// Attempts of the requests that have ended.
    pub(crate) fn of_ended(&self) -> u64 {
        let attempts = (1u64..).zip(&self.requests);
        let attempts = attempts.map(|(number, count)| number.saturating_mul(*count));
        attempts.fold(0, u64::saturating_add)
    }

    /// True if each of `intended` requests has a number of attempts, and each attempt an outcome.
    pub(crate) fn add_up_to(&self, intended: u64) -> bool {
        self.ended() == intended && self.of_ended() == self.total()
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::{Instant, Seed, Span};
    use proptest::prelude::*;

    use crate::outcome::Outcome;
    use crate::plan::MeasuredWindow;
    use crate::retry::{Backoff, RetryPolicy};
    use crate::tally::phases::Moments;
    use crate::tally::{Ending, LoadTally};

    /// Ends the attempts of a request in virtual time, each 1 ms after it was sent, until its policy ends it.
    fn carry_out(
        tally: &mut LoadTally,
        policy: &RetryPolicy,
        number: u64,
        ends: &[(Outcome, u16)],
    ) -> (u64, Outcome, Span) {
        let window = MeasuredWindow {
            start: Instant::ORIGIN,
            end: Instant::FAR_FUTURE,
        };
        let intended = Instant::ORIGIN + Span::from_millis(number);
        let (mut sent, mut attempts) = (intended, 0);
        for (outcome, status) in ends.iter().cycle() {
            attempts += 1;
            let done = sent + Span::from_millis(1);
            let moments = Moments {
                intended,
                begun: sent,
                sent,
                written: sent,
                ..Moments::default()
            };
            tally.attempt_ended(*outcome, &moments, done, window.start);
            if policy.permits(attempts, *outcome, Some(*status), None) {
                sent = done + policy.backoff.wait(Seed(1), number, attempts);
                continue;
            }
            tally.intended += 1;
            tally.ended(&Ending {
                outcome: *outcome,
                attempts,
                step: 0,
                request: 0,
                intended,
                done,
                window,
            });
            return (attempts.into(), *outcome, done.since(intended));
        }
        unreachable!("a cycle of ends has no end")
    }

    fn an_end() -> impl Strategy<Value = (Outcome, u16)> {
        let statuses = prop::sample::select(vec![200, 404, 429, 500, 503]);
        (prop::sample::select(Outcome::ALL.to_vec()), statuses)
    }

    proptest! {
        #[test]
        fn requests_and_attempts_add_up(
            limit in 1u32..6,
            base in prop::option::of(1u64..500),
            requests in prop::collection::vec(prop::collection::vec(an_end(), 1..4), 1..40),
            loops in 1usize..4,
        ) {
            let backoff = base.map_or(Backoff::None, |ms| Backoff::Exponential {
                base: Span::from_millis(ms),
            });
            let policy = RetryPolicy { limit, backoff };
            let mut tallies: Vec<LoadTally> =
                (0..loops).map(|_| LoadTally::new(vec![Instant::FAR_FUTURE], 1)).collect();
            let ends: Vec<(u64, Outcome, Span)> = (0..)
                .zip(&requests)
                .map(|(number, ends)| {
                    let tally = &mut tallies[number as usize % loops];
                    carry_out(tally, &policy, number, ends)
                })
                .collect();
            let mut all = LoadTally::new(vec![Instant::FAR_FUTURE], 1);
            tallies.iter().for_each(|tally| all.merge(tally));
            prop_assert!(all.attempts.add_up_to(all.intended));
            prop_assert_eq!(all.intended, requests.len() as u64);
            prop_assert_eq!(all.outcomes.total(), all.intended);
            prop_assert_eq!(all.attempts.total(), ends.iter().map(|end| end.0).sum::<u64>());
            prop_assert!(ends.iter().all(|end| end.0 <= u64::from(limit) + 1));
            prop_assert_eq!(all.attempts.retried(), ends.iter().filter(|end| end.0 > 1).count() as u64);
            for outcome in Outcome::ALL {
                let finals = ends.iter().filter(|end| end.1 == outcome).count() as u64;
                prop_assert_eq!(all.outcomes[outcome], finals);
                prop_assert!(all.attempts.outcomes[outcome] >= finals);
            }
            // Response times count from the first due time, and so last as many milliseconds as attempts.
            for (attempts, _, response) in ends {
                prop_assert!(response >= Span::from_millis(attempts));
            }
            let replies = all.ok.histogram().count() + all.rest.distribution().count();
            prop_assert_eq!(replies, all.intended);
        }
    }
}

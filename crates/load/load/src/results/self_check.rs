//! The generator's check of itself: each due request must be sent, and sent on time.
//!
//! A generator that falls behind offers less than the plan says, and its own delay is part of every response time. The
//! rule for the requests due in the measured time:
//!
//! | class | requests |
//! |---|---|
//! | unsent | found no connection free within the limit, no descriptor, or no time until the plan ended |
//! | given up | had a coded reply without memory left for it (`memory-limit`) |
//! | late | sent more than 10 ms after it was due, and more than a tenth of the median response time |
//!
//! The generator was the limit if more than 1 % are unsent or given up, or if more than 5 % and at least five are late.
//! With retries, a request whose next attempt cannot be sent is unsent. Retries sent late after the end of their back-off
//! are judged by the same rule as late requests: more than 5 % of the retries, and at least five.
//!
//! With HTTP/2, the generator was also the limit if the server used up one of its receive windows: the server then
//! held content back because the generator had not read what came before.
//!
//! With agents, the rule holds for each agent and for the whole run. The first agent that was the limit is named.
//!
//! Below that, the report names statistics in which lateness makes up more than a quarter.

use posthaste_stats::Statistic;
use posthaste_units::Span;

use crate::outcome::Outcome;
use crate::results::Run;
use crate::results::agents;
use crate::results::generator::Generator;

/// Share of due requests that may be unsent or given up.
const UNSENT: f64 = 0.01;
/// Share of due requests that may be late. In a short run a pause of the machine delays more than one in a hundred and
/// is no limit.
const LATE: f64 = 0.05;
/// Minimum number of late requests. Fewer are one short pause of a machine.
const FEWEST_LATE: u64 = 5;
/// Lateness below this is irrelevant to a service over a network.
const LATE_AFTER: Span = Span::from_millis(10);
/// Lateness below the median response time divided by this is irrelevant too.
const OF_MEDIAN: u64 = 10;
/// A statistic with a larger share of lateness describes the generator as much as the service.
const OWN: f64 = 0.25;

impl Generator {
    /// Checks a run.
    pub fn check(run: &Run) -> Self {
        let unsent =
            run.outcomes[Outcome::Dropped] + run.outcomes[Outcome::ClientFailed] + run.unbegun;
        let median = run.response.distribution().quantile(0.5).lower_bound();
        let late_after = (median.unwrap_or_default() / OF_MEDIAN).max(LATE_AFTER);
        let late = run.lateness.count_above(late_after);
        let retries = &run.attempts.retry_lateness;
        let late_retries = retries.count_above(late_after);
        let not_sent = not_sent_in_words(run, unsent);
        let held_back = held_back_in_words(run.streams.windows_exhausted);
        let reason = not_sent
            .or_else(|| late_in_words("requests", late, run.intended, late_after))
            .or_else(|| late_in_words("retries", late_retries, retries.count(), late_after))
            .or(held_back);
        let reason = agents::limit(&run.agents).or(reason);
        Self {
            limited: reason.is_some(),
            unsent,
            not_begun: run.unbegun + run.overdue,
            late,
            late_retries,
            late_after_ms: late_after.as_millis_f64(),
            lateness_in: lateness_in(run),
            reason,
        }
    }
}

/// Statistics in which lateness makes up more than [`OWN`].
fn lateness_in(run: &Run) -> Vec<Statistic> {
    let response = run.response.distribution();
    let is_own = |statistic: &Statistic| {
        let Some(share) = statistic.quantile() else {
            return false;
        };
        let lateness = run.lateness.quantile(share).as_secs_f64();
        let response = response.quantile(share).lower_bound();
        response.is_some_and(|response| lateness > OWN * response.as_secs_f64())
    };
    Statistic::ALL.into_iter().filter(is_own).collect()
}

/// Describes the requests that were not sent, or given up, if they are too many.
fn not_sent_in_words(run: &Run, unsent: u64) -> Option<String> {
    let of_due = |count: u64| count as f64 / run.intended.max(1) as f64;
    let percent = |count: u64| format!("{:.1} %", of_due(count) * 100.0);
    let not_begun = run.unbegun + run.overdue;
    if of_due(unsent) > UNSENT {
        let failed = run.outcomes[Outcome::ClientFailed];
        let failure = run.reasons.get(&Outcome::ClientFailed);
        let remedy = if not_begun * 2 > unsent {
            "give it a lower rate, more --threads or a machine of its own"
        } else if let Some(failure) = failure.filter(|_| failed * 2 > unsent) {
            failure
        } else {
            "raise --max-connections, or the limit of open files (ulimit -n)"
        };
        let unsent = percent(unsent);
        return Some(format!(
            "{unsent} of the requests that were due were not sent; {remedy}"
        ));
    }
    let given_up = run.outcomes[Outcome::MemoryLimit];
    (of_due(given_up) > UNSENT).then(|| {
        let given_up = percent(given_up);
        format!(
            "{given_up} of the replies were abandoned because memory to decode them ran out; \
             give it fewer connections, or leave --decode out"
        )
    })
}

/// Describes that the server waited for receive windows of the generator, if it did.
fn held_back_in_words(windows_exhausted: u64) -> Option<String> {
    let times = match windows_exhausted {
        0 => return None,
        1 => "once".to_owned(),
        more => format!("{more} times"),
    };
    Some(format!(
        "the server used up a receive window of the generator {times} and held content back; \
         give it a lower rate, more --threads or a machine of its own"
    ))
}

/// Describes the lateness with requests or retries if `late` of `all` are too many.
fn late_in_words(subject: &str, late: u64, all: u64, late_after: Span) -> Option<String> {
    let share = late as f64 / all.max(1) as f64;
    (late >= FEWEST_LATE && share > LATE).then(|| {
        let percent = share * 100.0;
        format!(
            "{percent:.1} % of the {subject} were sent more than {late_after} late; \
             give it a lower rate, more --threads or a machine of its own"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_this_machine_failed_give_its_reason() {
        let mut run = crate::testing::run(100, 0);
        run.outcomes[Outcome::ClientFailed] = 10;
        run.reasons
            .insert(Outcome::ClientFailed, "no port is free".to_owned());
        let reason = Generator::check(&run).reason.unwrap();
        assert!(reason.ends_with("not sent; no port is free"), "{reason}");
    }

    #[test]
    fn an_exhausted_receive_window_is_the_generators_limit() {
        let mut run = crate::testing::run(100, 0);
        assert!(!Generator::check(&run).limited);
        for (count, limit) in [(1, "generator once"), (2, "generator 2 times")] {
            run.streams.windows_exhausted = count;
            let generator = Generator::check(&run);
            assert!(generator.limited);
            let reason = generator.reason.unwrap();
            assert!(reason.contains(limit), "{reason}");
        }
    }
}

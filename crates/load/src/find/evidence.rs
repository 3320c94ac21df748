//! The evidence of one trial, and the only place of the search that reads a [`Run`].

use posthaste_stats::{Beyond, Recorder, Time};
use posthaste_units::Span;

use super::objective::{BoundedFigure, Objective};
use crate::outcome::Outcome;
use crate::results::Run;

/// A failed trial says nothing about the server if its sends were late by more than this share of its response times,
/// both at the 99th percentile.
const LATE: f64 = 0.25;
/// The same if at least this share of its requests was never sent.
const UNSENT: f64 = 0.01;

/// The result of one trial.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Requests that became due in the measured time.
    pub requests: u64,
    /// Times of the objective's figure: one per request, or the gaps between events, or one per stream.
    pub times: u64,
    /// Times beyond the bound. That of a request without a complete reply, or without an event, is beyond every bound.
    pub beyond: u64,
    /// Failed requests with a time beyond every bound.
    pub censored: u64,
    /// True if requests were due and the figure has no time at all. The objective is then violated.
    pub unknown: bool,
    /// Requests without a complete reply.
    pub unanswered: u64,
    /// Requests that did not end `ok`, unanswered ones included. For figures of events, also those without an event; if
    /// the plan has an end mark, also those without it.
    pub failed: u64,
    /// The objective's statistic as a multiple of its bound. Infinite if it lies among the unanswered.
    pub excess: f64,
    /// Median response time, or median time to the first event, in seconds. Infinite if it lies among the unanswered.
    pub median: f64,
    /// Median length of the replies in seconds, for figures of events. Otherwise zero, as a queue needs far longer.
    pub stream: f64,
    /// Times beyond the bound, and their dependence on each other.
    pub dependence: Beyond,
    /// Replies per second of the measured time.
    pub throughput: f64,
    /// True if the generator sent too late or too little, or held content back, for the trial to count.
    pub late: bool,
    /// Duration of the trial, settling and draining included.
    pub elapsed: Span,
}

impl Evidence {
    /// Evidence of a run that took `elapsed`. With `has_end_mark`, a reply without the end mark has failed.
    pub(crate) fn from_run(
        objective: &Objective,
        has_end_mark: bool,
        run: &Run,
        elapsed: Span,
    ) -> Self {
        let unanswered = run.response.distribution().censored();
        let unmarked = match has_end_mark {
            true => run.intended - run.events.with_end_mark,
            false => 0,
        };
        let failed = run.outcomes.failed().max(unanswered).max(unmarked);
        let known = match objective.figure {
            BoundedFigure::FirstEvent => run.events.first.histogram(),
            _ => run.response.histogram(),
        };
        let slowest = known.quantile(0.99).as_secs_f64();
        // Without a complete reply, or an event, there is no time to compare with, and the server is the cause.
        let is_behind = run.lateness.quantile(0.99).as_secs_f64() > LATE * slowest;
        let unsent = [
            Outcome::Dropped,
            Outcome::ClientFailed,
            Outcome::MemoryLimit,
        ]
        .map(|outcome| run.outcomes[outcome])
        .iter()
        .sum::<u64>();
        let is_unsent = unsent as f64 >= UNSENT * run.intended.max(1) as f64;
        let is_held_back = run.streams.windows_exhausted > 0;
        let late = known.count() > 0 && is_behind || is_unsent || is_held_back;
        let evidence = match objective.figure.is_of_events() {
            false => Self::new(objective, &run.response, failed - unanswered),
            true => Self::of_events(objective, run, failed),
        };
        Self {
            unanswered,
            throughput: run.achieved_rate(),
            late,
            elapsed,
            ..evidence
        }
    }

    /// Evidence of a figure of events. A figure without any time is violated: each request counts as beyond the bound.
    fn of_events(objective: &Objective, run: &Run, failed: u64) -> Self {
        let events = &run.events;
        let times = match objective.figure {
            BoundedFigure::Response => &run.response,
            BoundedFigure::FirstEvent => &events.first,
            BoundedFigure::Gap => &events.gaps,
            BoundedFigure::StreamPeriod => &events.periods,
        };
        let eventless = events.first.distribution().censored();
        let failed = failed.max(eventless);
        // A request without an event has no gap, so no failed request is known to be among the gaps.
        let censored = match objective.figure {
            BoundedFigure::Gap => 0,
            _ => times.distribution().censored().min(failed),
        };
        let median = |times: &Recorder| seconds(times.distribution().quantile(0.5));
        let stream = median(&run.response);
        let of_times = Self::new(objective, times, 0);
        let unknown = of_times.times == 0 && run.intended > 0;
        let evidence = Self {
            requests: run.intended,
            failed,
            censored,
            median: median(&events.first),
            stream: if stream.is_finite() { stream } else { 0.0 },
            ..of_times
        };
        match unknown {
            false => evidence,
            true => Self {
                times: run.intended,
                beyond: run.intended,
                excess: f64::INFINITY,
                unknown,
                ..evidence
            },
        }
    }

    /// Evidence of response times. Of the complete replies among them, `errors` did not end `ok`.
    pub fn new(objective: &Objective, times: &Recorder, errors: u64) -> Self {
        let all = times.distribution();
        let statistic = match objective.quantile {
            Some(share) => all.quantile(share),
            None => all.mean(),
        };
        let dependence = times.beyond(objective.bound);
        Self {
            requests: dependence.count,
            times: dependence.count,
            beyond: dependence.beyond,
            censored: all.censored(),
            unanswered: all.censored(),
            failed: all.censored() + errors,
            excess: seconds(statistic) / objective.bound.as_secs_f64(),
            median: seconds(all.quantile(0.5)),
            dependence,
            ..Self::default()
        }
    }

    /// The share of requests that did not end `ok`.
    pub fn errors(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    /// The share of times beyond the bound.
    pub fn share(&self) -> f64 {
        self.beyond as f64 / self.times.max(1) as f64
    }
}

/// A time in seconds, infinite if it lies among the unanswered.
fn seconds(time: Time) -> f64 {
    time.known().map_or(f64::INFINITY, Span::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evidence of ten requests, of which two were given up, with one event in each of `with_event` replies.
    fn evidence(objective: &str, with_event: u64) -> Evidence {
        let mut run = crate::testing::run(8, 2);
        for n in 0..10 {
            let at = Span::from_millis(n);
            match n < with_event {
                true => run.events.first.record(at, Span::from_millis(1)),
                false => run.events.first.record_censored(at, None),
            }
        }
        let objective: crate::Assertion = objective.parse().unwrap();
        Evidence::from_run(
            &objective.objective().unwrap(),
            false,
            &run,
            Span::from_secs(1),
        )
    }

    #[test]
    fn a_request_without_an_event_is_beyond_every_bound_and_failed() {
        let found = evidence("first<1h", 7);
        assert_eq!((found.requests, found.times, found.beyond), (10, 10, 3));
        assert_eq!((found.failed, found.censored, found.unanswered), (3, 3, 2));
        assert!(!found.unknown && found.excess.is_infinite());
        // A stream that broke off after its first event has failed in time.
        let found = evidence("first<1h", 10);
        assert_eq!((found.failed, found.censored, found.beyond), (2, 0, 0));
    }

    #[test]
    fn a_figure_without_a_value_is_beyond_its_bound_in_every_request() {
        for objective in ["gap<1h", "gap-mean<1h", "events>1/h"] {
            let found = evidence(objective, 10);
            assert!(
                found.unknown && found.excess.is_infinite(),
                "{objective}: {found:?}"
            );
            assert_eq!((found.times, found.beyond), (10, 10), "{objective}");
        }
        assert!(!evidence("p99<1h", 0).unknown);
    }
}

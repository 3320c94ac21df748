//! The evidence of one trial, and the only place of the search that reads a [`Run`].

use posthaste_load::{Outcome, Run};
use posthaste_stats::{Recorder, RequestPart, Time};
use posthaste_units::Span;

use super::pool::Pool;
use crate::objective::{BoundedFigure, Objective};

/// A failed trial says nothing about the server if at least this share of its requests was never sent.
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
    /// The times over time. Those beyond the bound and those of failed requests are bad. For a mean, only failed requests
    /// are.
    pub parts: Vec<RequestPart>,
    /// The requests, if those beyond half of the bound are bad.
    pub(super) slow: Pool,
    /// The requests, if only failed ones are bad.
    pub(super) failures: Pool,
    /// The mean, if it is the objective.
    pub mean: Option<MeanEvidence>,
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
    /// Replies per second of the measured time.
    pub throughput: f64,
    /// True if the generator may be the reason for the times: without its lateness they would be within the objective, or
    /// it sent too little or held content back.
    pub late: bool,
    /// Duration of the trial, settling and draining included.
    pub elapsed: Span,
}

/// The mean of a trial as a multiple of its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEvidence {
    /// The multiple. Infinite with requests without a reply.
    pub excess: f64,
    /// Half-width of its 95 % interval in the logarithm. `None` if the trial is too short to tell.
    pub half_width: Option<f64>,
}

impl MeanEvidence {
    /// The lower end of its 95 % interval. Zero if it is not known.
    pub(super) fn least(&self) -> f64 {
        self.half_width
            .map_or(0.0, |half_width| self.excess * (-half_width).exp())
    }

    /// The upper end of its 95 % interval. Infinite if it is not known.
    pub(super) fn most(&self) -> f64 {
        self.half_width
            .map_or(f64::INFINITY, |half_width| self.excess * half_width.exp())
    }
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
        let unmarked = if has_end_mark {
            run.intended - run.events.with_end_mark
        } else {
            0
        };
        let failed = run.outcomes.failed().max(unanswered).max(unmarked);
        let unsent = [
            Outcome::Dropped,
            Outcome::ClientFailed,
            Outcome::MemoryLimit,
        ]
        .map(|outcome| run.outcomes[outcome])
        .iter()
        .sum::<u64>();
        let is_unsent = unsent as f64 >= UNSENT * run.intended.max(1) as f64;
        let evidence = if objective.figure.is_of_events() {
            Self::of_events(objective, run, failed)
        } else {
            Self {
                failed,
                ..Self::of_responses(objective, &run.response, &run.ok)
            }
        };
        let is_held_back = run.streams.windows_exhausted > 0;
        let times = times_of(objective.figure, run);
        let lateness = run.lateness.quantile(0.99);
        let is_decided_by_lateness =
            is_violated(objective, times, Span::ZERO) && !is_violated(objective, times, lateness);
        // Without its end mark, or among gaps, a failed request is not among the times.
        let failures = if evidence.failures.bad < evidence.failed as f64 {
            Pool::of_single(evidence.requests as f64, evidence.failed as f64)
        } else {
            evidence.failures
        };
        Self {
            failures,
            unanswered,
            throughput: run.achieved_rate(),
            late: is_decided_by_lateness || is_unsent || is_held_back,
            elapsed,
            ..evidence
        }
    }

    /// Evidence of a figure of events. A figure without any time is violated: each request counts as beyond the bound.
    fn of_events(objective: &Objective, run: &Run, failed: u64) -> Self {
        let events = &run.events;
        let times = times_of(objective.figure, run);
        let eventless = events.first.distribution().censored();
        let failed = failed.max(eventless);
        let median = |times: &Recorder| seconds(times.distribution().quantile(0.5));
        let stream = median(&run.response);
        let of_times = Self::of_times(objective, times, None);
        let unknown = of_times.times == 0 && run.intended > 0;
        let evidence = Self {
            requests: run.intended,
            failed,
            median: median(&events.first),
            stream: if stream.is_finite() { stream } else { 0.0 },
            ..of_times
        };
        if !unknown {
            return evidence;
        }
        Self {
            times: run.intended,
            beyond: run.intended,
            excess: f64::INFINITY,
            unknown,
            ..evidence
        }
    }

    /// Evidence of the response times of all requests due, and of the good replies among them.
    pub fn of_responses(objective: &Objective, all: &Recorder, good: &Recorder) -> Self {
        Self::of_times(objective, all, Some(good))
    }

    fn of_times(objective: &Objective, times: &Recorder, good: Option<&Recorder>) -> Self {
        let all = times.distribution();
        let statistic = match objective.quantile {
            Some(share) => all.quantile(share),
            None => all.mean(),
        };
        let beyond = times.beyond(objective.bound);
        let excess = seconds(statistic) / objective.bound.as_secs_f64();
        let bound = objective.quantile.map_or(Span::MAX, |_| objective.bound);
        Self {
            requests: beyond.count,
            times: beyond.count,
            beyond: beyond.beyond,
            parts: times.request_parts(good, bound),
            slow: Pool::from_parts(&times.request_parts(good, bound / 2)),
            failures: Pool::from_parts(&times.request_parts(good, Span::MAX)),
            mean: objective.quantile.is_none().then(|| MeanEvidence {
                excess,
                half_width: times.mean_half_width(),
            }),
            unanswered: all.censored(),
            failed: good.map_or(all.censored(), |good| {
                beyond.count - good.distribution().count()
            }),
            excess,
            median: seconds(all.quantile(0.5)),
            ..Self::default()
        }
    }

    /// The requests, with their bad ones in bursts.
    pub(super) fn bad_pool(&self) -> Pool {
        Pool::from_parts(&self.parts)
    }

    /// The mean time in seconds in the last quarter of the trial. Infinite if it is not known.
    pub(super) fn last_mean(&self) -> f64 {
        let known: Vec<f64> = self
            .parts
            .iter()
            .filter(|part| part.count > 0.0)
            .map(|part| part.mean)
            .collect();
        let last = &known[known.len() * 3 / 4..];
        if last.is_empty() {
            return f64::INFINITY;
        }
        last.iter().sum::<f64>() / last.len() as f64
    }

    /// The share of requests that did not end `ok`.
    pub fn errors(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    /// Bad requests: beyond the bound, or failed.
    pub fn bad(&self) -> f64 {
        self.parts.iter().map(|part| part.bad).sum()
    }

    /// The share of bad requests.
    pub fn bad_share(&self) -> f64 {
        self.bad() / self.times.max(1) as f64
    }
}

/// The times of a figure.
const fn times_of(figure: BoundedFigure, run: &Run) -> &Recorder {
    match figure {
        BoundedFigure::Response => &run.response,
        BoundedFigure::FirstEvent => &run.events.first,
        BoundedFigure::Gap => &run.events.gaps,
        BoundedFigure::StreamPeriod => &run.events.periods,
    }
}

/// True if the times violate the objective although each may be longer by `lateness`.
fn is_violated(objective: &Objective, times: &Recorder, lateness: Span) -> bool {
    let bound = objective.bound + lateness;
    if objective.quantile.is_none() {
        return seconds(times.distribution().mean()) > bound.as_secs_f64();
    }
    let beyond = times.beyond(bound);
    beyond.beyond as f64 > objective.allowed() * beyond.count as f64
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
            if n < with_event {
                run.events.first.record(at, Span::from_millis(1));
            } else {
                run.events.first.record_censored(at, None);
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
        assert_eq!((found.failed, found.unanswered), (3, 2));
        assert!(!found.unknown && found.excess.is_infinite());
        // A stream that broke off after its first event has failed in time.
        let found = evidence("first<1h", 10);
        assert_eq!((found.failed, found.beyond), (2, 0));
    }

    #[test]
    fn an_unknown_figure_exceeds_its_bound_in_every_request() {
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

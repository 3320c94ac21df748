//! `--assert 'p99<200ms'`: one figure of a report against one bound.
//!
//! The figure decides the unit of the bound: a time for response times (of all requests due, or of good replies with
//! `ok-p99`, of events with `first` and `gap`), a percentage for shares (`errors`, `retried`, or the name of an
//! outcome), a rate for `rate` and `events`. The same grammar names
//! the objective of `--find`.

use std::fmt;
use std::str::FromStr;

use posthaste_load::{Outcome, Run};
use posthaste_stats::{BoundSample, FEWEST_FOR_P999, Recorder, Statistic, StatisticReading};
use posthaste_units::{Rate, Ratio, Span};
use thiserror::Error;

use crate::objective::{BoundedFigure, Objective};
use crate::report::REACHED_BY;
use crate::report::{AssertionResult, Report, reading};

/// A bound on one figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    figure: AssertedFigure,
    relation: Relation,
    /// Milliseconds, a share, or events per second, depending on the figure.
    bound: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AssertedFigure {
    /// Of all requests due.
    Response(Statistic),
    /// Of good replies.
    OkResponse(Statistic),
    Errors,
    /// Requests with more than one attempt.
    Retried,
    Share(Outcome),
    /// Replies that send the client to another URL.
    Redirects,
    Rate,
    /// Due to first event.
    FirstEvent(Statistic),
    /// Gaps between events.
    Gap(Statistic),
    /// Events per second of a stream.
    EventRate,
    /// Requests due without the end mark in a complete reply.
    Unmarked,
    /// The result of a search.
    Capacity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Prefix of figures of good replies.
const OK: &str = "ok-";
/// Figure of the first event; alone, its 99th percentile.
const FIRST: &str = "first";
/// Figure of the gaps between events; alone, their 99th percentile.
const GAP: &str = "gap";
/// Figure of the events per second of a stream.
const EVENTS: &str = "events";
/// Figure of replies that send the client to another URL.
const REDIRECTS: &str = "redirects";
/// Figure of requests without the end mark in a complete reply.
const UNMARKED: &str = "no-end-mark";
/// Figure of a search: its lower end.
const CAPACITY: &str = "capacity";

/// Reasons why an assertion cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssertionError {
    /// It contains no relation.
    #[error("{0:?} compares nothing: write for example 'p99<200ms', 'errors<1%' or 'rate>=500/s'")]
    NoRelation(String),
    /// A figure that is not in the report.
    #[error("{figure:?} is not a figure of the report{}: use {}", nearest(figure), figures().join(", "))]
    UnknownFigure {
        /// The figure as given.
        figure: String,
    },
    /// A bound that does not fit the figure.
    #[error("{figure} is bounded by {kind}: {reason}")]
    Bound {
        /// The figure.
        figure: String,
        /// A time, a share or a rate.
        kind: &'static str,
        /// The parser's error.
        #[source]
        reason: posthaste_units::ParseError,
    },
    /// A capacity is bounded from above. A search shows a lower end.
    #[error(
        "{0:?}: a search shows the rate that the service holds: write for example 'capacity>150/s'"
    )]
    CapacityFromAbove(String),
}

fn figures() -> Vec<String> {
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.name().to_owned());
    let times = Statistic::ALL
        .iter()
        .map(|statistic| statistic.key().to_owned());
    let of_ok = Statistic::ALL
        .iter()
        .map(|statistic| format!("{OK}{}", statistic.key()));
    let others = [
        "errors", "retried", REDIRECTS, "rate", FIRST, GAP, EVENTS, UNMARKED, CAPACITY,
    ]
    .map(str::to_owned);
    let of_events = [FIRST, GAP].into_iter().flat_map(|figure| {
        let all = Statistic::ALL.iter();
        all.map(move |statistic| format!("{figure}-{}", statistic.key()))
    });
    let times = times.chain(of_ok).chain(of_events);
    times.chain(others).chain(outcomes).collect()
}

fn nearest(figure: &str) -> String {
    figures()
        .into_iter()
        .map(|known| (strsim::jaro_winkler(figure, &known), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| format!(" (did you mean {known}?)"))
        .unwrap_or_default()
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let at = text
            .find(['<', '>'])
            .ok_or_else(|| AssertionError::NoRelation(text.to_owned()))?;
        let (relation, width) = match (&text[at..=at], text[at + 1..].starts_with('=')) {
            ("<", false) => (Relation::Below, 1),
            ("<", true) => (Relation::AtMost, 2),
            (_, false) => (Relation::Above, 1),
            (_, true) => (Relation::AtLeast, 2),
        };
        let (name, value) = (text[..at].trim(), text[at + width..].trim());
        let figure = AssertedFigure::named(name)?;
        if figure == AssertedFigure::Capacity && !relation.is_lower() {
            return Err(AssertionError::CapacityFromAbove(text.to_owned()));
        }
        Ok(Self {
            figure,
            relation,
            bound: figure.bound(name, value)?,
            text: text.to_owned(),
        })
    }
}

impl Relation {
    /// True if it bounds a figure from below.
    const fn is_lower(self) -> bool {
        matches!(self, Self::Above | Self::AtLeast)
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Below => value < bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::AtLeast => value >= bound,
        }
    }
}

impl AssertedFigure {
    fn named(name: &str) -> Result<Self, AssertionError> {
        let time = |name: &str| Statistic::ALL.into_iter().find(|time| time.key() == name);
        if let Some(time) = time(name) {
            return Ok(Self::Response(time));
        }
        if let Some(time) = name.strip_prefix(OK).and_then(time) {
            return Ok(Self::OkResponse(time));
        }
        let of_events = |figure: &str| match name.strip_prefix(figure)? {
            "" => Some(Statistic::P99),
            rest => time(rest.strip_prefix('-')?),
        };
        if let Some(statistic) = of_events(FIRST) {
            return Ok(Self::FirstEvent(statistic));
        }
        if let Some(statistic) = of_events(GAP) {
            return Ok(Self::Gap(statistic));
        }
        match (name, Outcome::from_name(name)) {
            (EVENTS, _) => Ok(Self::EventRate),
            (UNMARKED, _) => Ok(Self::Unmarked),
            (CAPACITY, _) => Ok(Self::Capacity),
            (REDIRECTS, _) => Ok(Self::Redirects),
            ("errors", _) => Ok(Self::Errors),
            ("retried", _) => Ok(Self::Retried),
            ("rate", _) => Ok(Self::Rate),
            (_, Some(outcome)) => Ok(Self::Share(outcome)),
            _ => Err(AssertionError::UnknownFigure {
                figure: name.to_owned(),
            }),
        }
    }

    fn bound(self, name: &str, value: &str) -> Result<f64, AssertionError> {
        let error = |kind, reason| AssertionError::Bound {
            figure: name.to_owned(),
            kind,
            reason,
        };
        match self {
            Self::Response(_) | Self::OkResponse(_) | Self::FirstEvent(_) | Self::Gap(_) => value
                .parse::<Span>()
                .map(Span::as_millis_f64)
                .map_err(|reason| error("a time", reason)),
            Self::Errors | Self::Retried | Self::Share(_) | Self::Redirects | Self::Unmarked => {
                let share = value.parse::<Ratio>();
                share
                    .map(Ratio::get)
                    .map_err(|reason| error("a share", reason))
            }
            Self::Rate | Self::EventRate | Self::Capacity => value
                .parse::<Rate>()
                .map(Rate::as_per_second)
                .map_err(|reason| error("a rate", reason)),
        }
    }

    /// Returns the figure in a report: milliseconds, a share, or events per second. Infinite if it falls among requests
    /// without a reply, `None` if unknown.
    fn value(self, report: &Report) -> Option<f64> {
        let share = |count: u64| count as f64 / report.intended as f64;
        if report.intended == 0 {
            return None;
        }
        match self {
            Self::Response(_) | Self::OkResponse(_) | Self::FirstEvent(_) | Self::Gap(_) => {
                self.reading(report)?.or_infinite()
            }
            Self::Errors => Some(report.error_share()),
            Self::Retried => Some(share(report.attempts.as_ref()?.retried())),
            Self::Share(outcome) => Some(share(report.outcomes[outcome])),
            Self::Redirects => Some(share(report.redirects())),
            Self::Rate => Some(report.achieved_rate),
            Self::EventRate => report.events.as_ref()?.stream_rate,
            // Only a search has one.
            Self::Capacity => None,
            Self::Unmarked => {
                let marked = report.events.as_ref()?.with_end_mark?;
                Some(share(report.intended - marked))
            }
        }
    }

    /// Returns the response time in a report, if the figure is one.
    fn reading(self, report: &Report) -> Option<StatisticReading> {
        match self {
            Self::Response(statistic) => Some(report.response_time_ms.reading(statistic)),
            Self::OkResponse(statistic) => Some(reading(&report.ok_response_time_ms, statistic)),
            Self::FirstEvent(statistic) => {
                Some(report.events.as_ref()?.first_ms.reading(statistic))
            }
            Self::Gap(statistic) => Some(report.events.as_ref()?.gap_ms.reading(statistic)),
            _ => None,
        }
    }
}

impl Assertion {
    /// Checks the report of a run, and returns the assertion with its result. Unless `allow_few`, a bound that needs more
    /// requests to be shown to hold is unknown, or fails if more are beyond it than chance explains.
    pub fn check(&self, report: &Report, run: &Run, allow_few: bool) -> AssertionResult {
        let mut holds = self.holds(report);
        let mut found = self.found(report);
        let few = self
            .sample(report, run)
            .filter(|sample| holds.is_some() && !allow_few && !sample.suffices());
        if let Some(few) = few {
            holds = few.exceeds_chance().then_some(false);
            if holds.is_none() {
                found = format!(
                    "unknown: {found}, but {} needs {} {}, and there were {}; give more, or accept few with --allow-few",
                    self.text,
                    few.needed,
                    self.counted(),
                    few.count
                );
            }
        }
        AssertionResult {
            assertion: self.text.clone(),
            holds,
            found,
        }
    }

    /// True if the report meets the assertion. `None` if the figure is unknown.
    pub fn holds(&self, report: &Report) -> Option<bool> {
        let value = self.figure.value(report)?;
        Some(self.relation.holds(value, self.bound))
    }

    /// The compared things in words.
    const fn counted(&self) -> &'static str {
        match self.figure {
            AssertedFigure::Gap(_) => "gaps",
            AssertedFigure::EventRate => "streams",
            _ => "requests",
        }
    }

    /// The requests compared with the bound. `None` for a figure without a share that may be beyond it.
    fn sample(&self, report: &Report, run: &Run) -> Option<BoundSample> {
        let times = |times: &Recorder, statistic: Statistic| {
            let found = times.beyond(Span::from_secs_f64(self.bound / 1e3));
            let allowed = 1.0 - statistic.quantile()?;
            let sample = BoundSample::new(found.count, found.beyond, allowed);
            let needed = if statistic == Statistic::P999 {
                FEWEST_FOR_P999
            } else {
                sample.needed
            };
            Some(BoundSample { needed, ..sample })
        };
        // A share bounded from below is the share of the others, bounded from above.
        let share = |count: u64| {
            Some(if self.relation.is_lower() {
                BoundSample::new(run.intended, run.intended - count, 1.0 - self.bound)
            } else {
                BoundSample::new(run.intended, count, self.bound)
            })
        };
        if self.figure == AssertedFigure::EventRate && self.relation.is_lower() {
            let found = run
                .events
                .periods
                .beyond(Span::from_secs_f64(1.0 / self.bound));
            return Some(BoundSample::new(
                found.count,
                found.beyond,
                1.0 - REACHED_BY,
            ));
        }
        match self.figure {
            AssertedFigure::Response(_)
            | AssertedFigure::OkResponse(_)
            | AssertedFigure::FirstEvent(_)
            | AssertedFigure::Gap(_)
                if self.relation.is_lower() =>
            {
                None
            }
            AssertedFigure::Response(statistic) => times(&run.response, statistic),
            AssertedFigure::OkResponse(statistic) => times(&run.ok, statistic),
            AssertedFigure::FirstEvent(statistic) => times(&run.events.first, statistic),
            AssertedFigure::Gap(statistic) => times(&run.events.gaps, statistic),
            AssertedFigure::Errors => share(run.outcomes.failed()),
            AssertedFigure::Share(outcome) => share(run.outcomes[outcome]),
            AssertedFigure::Redirects => share(report.redirects()),
            AssertedFigure::Unmarked => share(run.intended - run.events.with_end_mark),
            AssertedFigure::Retried => share(report.attempts.as_ref()?.retried()),
            AssertedFigure::Rate | AssertedFigure::EventRate | AssertedFigure::Capacity => None,
        }
    }

    /// Describes the figure in the report.
    pub fn found(&self, report: &Report) -> String {
        let Some(value) = self.figure.value(report) else {
            return self.unknown(report);
        };
        match self.figure {
            AssertedFigure::Response(_)
            | AssertedFigure::OkResponse(_)
            | AssertedFigure::FirstEvent(_)
            | AssertedFigure::Gap(_) => {
                let reading = self.figure.reading(report);
                let reading = reading.expect("a response time has a reading");
                if report.is_silent() {
                    StatisticReading::Never.format(|_| String::new())
                } else {
                    reading.format(|ms| format!("{ms:.3} ms"))
                }
            }
            AssertedFigure::Errors
            | AssertedFigure::Retried
            | AssertedFigure::Share(_)
            | AssertedFigure::Redirects
            | AssertedFigure::Unmarked => Ratio::new(value)
                .expect("a share is from 0 to 1")
                .to_string(),
            AssertedFigure::Rate | AssertedFigure::EventRate | AssertedFigure::Capacity => {
                format!("{value:.1}/s")
            }
        }
    }

    /// Returns the reason why the figure is unknown.
    fn unknown(&self, report: &Report) -> String {
        let replies = match self.figure {
            AssertedFigure::OkResponse(_) => report.ok_response_time_ms.count,
            _ => report.intended,
        };
        match replies {
            0 if report.intended == 0 => "no request was due".to_owned(),
            _ if self.figure == AssertedFigure::Capacity => {
                "unknown: only a search has a capacity; give --find".to_owned()
            }
            _ if self.figure == AssertedFigure::Retried => {
                "unknown: clients did not retry; give --retries N".to_owned()
            }
            _ if self.is_of_events() => match &report.events {
                None => "unknown: replies were not read as events; give --stream, or a gRPC method that streams replies",
                Some(_) if self.figure == AssertedFigure::Unmarked => {
                    "unknown: no end mark was given; give --end-mark TEXT"
                }
                Some(events) if self.is_of_gaps() && events.at_once > 0 => {
                    "unknown: the events of each reply arrived at one instant, without a gap or a rate"
                }
                Some(_) => "unknown: no reply had enough events",
            }
            .to_owned(),
            0 => "no good reply".to_owned(),
            _ => {
                format!("unknown: p99.9 needs {FEWEST_FOR_P999} requests, and there were {replies}")
            }
        }
    }

    /// True if the figure is about events in replies.
    pub const fn is_of_events(&self) -> bool {
        matches!(
            self.figure,
            AssertedFigure::FirstEvent(_)
                | AssertedFigure::Gap(_)
                | AssertedFigure::EventRate
                | AssertedFigure::Unmarked
        )
    }

    /// True if the figure is about the time between events.
    const fn is_of_gaps(&self) -> bool {
        matches!(
            self.figure,
            AssertedFigure::Gap(_) | AssertedFigure::EventRate
        )
    }

    /// True if the figure is about the end mark of streams.
    pub const fn is_of_end_mark(&self) -> bool {
        matches!(self.figure, AssertedFigure::Unmarked)
    }

    /// Returns the objective for the search. `None` unless it bounds a time from above, or a rate of streams from below.
    pub(crate) fn objective(&self) -> Option<Objective> {
        let upper = !self.relation.is_lower();
        let quantile = |statistic: Statistic| match statistic {
            Statistic::Mean => None,
            Statistic::Max => Some(1.0),
            quantile => quantile.quantile(),
        };
        let (figure, quantile, seconds) = match self.figure {
            AssertedFigure::Response(statistic) if upper => (
                BoundedFigure::Response,
                quantile(statistic),
                self.bound / 1e3,
            ),
            AssertedFigure::FirstEvent(statistic) if upper => (
                BoundedFigure::FirstEvent,
                quantile(statistic),
                self.bound / 1e3,
            ),
            AssertedFigure::Gap(statistic) if upper => {
                (BoundedFigure::Gap, quantile(statistic), self.bound / 1e3)
            }
            AssertedFigure::EventRate if !upper && self.bound > 0.0 => (
                BoundedFigure::StreamPeriod,
                Some(REACHED_BY),
                1.0 / self.bound,
            ),
            _ => return None,
        };
        let bound = Span::from_secs_f64(seconds);
        (!bound.is_zero()).then(|| Objective {
            figure,
            quantile,
            bound,
            tolerance: self.tolerance(),
        })
    }

    /// Share of requests that may fail. A failed request has no response time, so more failures than the statistic
    /// leaves above its bound would miss the objective.
    fn tolerance(&self) -> f64 {
        match self.figure {
            AssertedFigure::Response(statistic)
            | AssertedFigure::FirstEvent(statistic)
            | AssertedFigure::Gap(statistic) => match statistic {
                Statistic::P999 => 0.001,
                Statistic::Max => f64::MIN_POSITIVE,
                _ => 0.01,
            },
            _ => 0.01,
        }
    }

    /// Returns `times` the bound for a statistic that is decided by as few replies as may fail ([`Self::tolerance`]). A
    /// reply later than that misses the bound like a missing reply, so waiting longer is useless.
    pub(crate) fn hopeless_after(&self, times: f64) -> Span {
        match self.figure {
            AssertedFigure::Response(Statistic::P99 | Statistic::P999 | Statistic::Max) => {
                Span::from_secs_f64(self.bound * times / 1e3)
            }
            _ => Span::MAX,
        }
    }

    /// True if it is about the result of a search.
    pub const fn is_of_search(&self) -> bool {
        matches!(self.figure, AssertedFigure::Capacity)
    }

    /// Checks the lower end of a search. `None` if that is missing.
    pub(crate) fn check_capacity(&self, held: Option<f64>) -> AssertionResult {
        AssertionResult {
            assertion: self.text.clone(),
            holds: held.map(|held| self.relation.holds(held, self.bound)),
            found: held.map_or_else(
                || "unknown: no rate is shown to hold".to_owned(),
                |held| format!("{held:.1}/s is shown to hold"),
            ),
        }
    }
}

impl Report {
    /// Checks the assertions and stores the results for every form of the report.
    pub fn check(&mut self, assertions: &[Assertion], run: &Run, allow_few: bool) {
        let checked = assertions
            .iter()
            .map(|assertion| assertion.check(self, run, allow_few));
        self.assertions = checked.collect();
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests;

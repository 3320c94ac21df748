//! `--assert 'p99<200ms'`: one figure of a report against one bound.
//!
//! The figure decides the unit of the bound: a time for response times (of all requests due, or of good replies with
//! `ok-p99`, of events with `first` and `gap`), a percentage for shares (`errors`, `retried`, or the name of an
//! outcome), a rate for `rate` and `events`. The same grammar names
//! the objective of `--find`.

use std::fmt;
use std::str::FromStr;

use posthaste_stats::{FEWEST_FOR_P999, Statistic, StatisticReading};
use posthaste_units::{Rate, Ratio, Span};
use thiserror::Error;

use crate::events::REACHED_BY;
use crate::find::objective::{BoundedFigure, Objective};
use crate::outcome::Outcome;
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
    Rate,
    /// Due to first event.
    FirstEvent(Statistic),
    /// Gaps between events.
    Gap(Statistic),
    /// Events per second of a stream.
    EventRate,
    /// Requests due without the end mark in a complete reply.
    Unmarked,
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
/// Figure of requests without the end mark in a complete reply.
const UNMARKED: &str = "no-end-mark";

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
    /// A share without `%`. It could mean two things.
    #[error("{figure} is bounded by a share: write {value}%, or {meant} if that is meant")]
    Bare {
        /// The figure.
        figure: String,
        /// The value as given.
        value: String,
        /// The same share in percent.
        meant: String,
    },
}

fn figures() -> Vec<String> {
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.name().to_owned());
    let times = Statistic::ALL
        .iter()
        .map(|statistic| statistic.key().to_owned());
    let of_ok = Statistic::ALL
        .iter()
        .map(|statistic| format!("{OK}{}", statistic.key()));
    let others = ["errors", "retried", "rate", FIRST, GAP, EVENTS, UNMARKED].map(str::to_owned);
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
        Ok(Self {
            figure,
            relation,
            bound: figure.bound(name, value)?,
            text: text.to_owned(),
        })
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
            Self::Errors | Self::Retried | Self::Share(_) | Self::Unmarked => {
                let share = value.parse::<Ratio>();
                let share = share.map_err(|reason| error("a share", reason))?;
                if share.get() > 0.0 && !value.ends_with('%') {
                    return Err(AssertionError::Bare {
                        figure: name.to_owned(),
                        value: value.to_owned(),
                        meant: share.to_string(),
                    });
                }
                Ok(share.get())
            }
            Self::Rate | Self::EventRate => value
                .parse::<Rate>()
                .map(Rate::as_per_second)
                .map_err(|reason| error("a rate", reason)),
        }
    }

    /// Returns the figure in a report: milliseconds, a share, or events per second. Infinite if it falls among requests
    /// without a reply, `None` if unknown.
    fn of(self, report: &Report) -> Option<f64> {
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
            Self::Rate => Some(report.achieved_rate),
            Self::EventRate => report.events.as_ref()?.stream_rate,
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
    /// Checks the report, and returns the assertion with its result.
    pub fn check(&self, report: &Report) -> AssertionResult {
        AssertionResult {
            assertion: self.text.clone(),
            holds: self.holds(report),
            found: self.found(report),
        }
    }

    /// True if the report meets the assertion. An unknown figure meets no bound.
    pub fn holds(&self, report: &Report) -> bool {
        let Some(value) = self.figure.of(report) else {
            return false;
        };
        match self.relation {
            Relation::Below => value < self.bound,
            Relation::AtMost => value <= self.bound,
            Relation::Above => value > self.bound,
            Relation::AtLeast => value >= self.bound,
        }
    }

    /// Describes the figure in the report.
    pub fn found(&self, report: &Report) -> String {
        let Some(value) = self.figure.of(report) else {
            return self.unknown(report);
        };
        match self.figure {
            AssertedFigure::Response(_)
            | AssertedFigure::OkResponse(_)
            | AssertedFigure::FirstEvent(_)
            | AssertedFigure::Gap(_) => {
                let reading = self.figure.reading(report);
                let reading = reading.expect("a response time has a reading");
                match report.is_silent() {
                    true => StatisticReading::Never.words(|_| String::new()),
                    false => reading.words(|ms| Span::from_secs_f64(ms / 1e3).to_string()),
                }
            }
            AssertedFigure::Errors
            | AssertedFigure::Retried
            | AssertedFigure::Share(_)
            | AssertedFigure::Unmarked => Ratio::new(value)
                .expect("a share is from 0 to 1")
                .to_string(),
            AssertedFigure::Rate | AssertedFigure::EventRate => format!("{value:.1}/s"),
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
            _ if self.figure == AssertedFigure::Retried => {
                "unknown: clients did not retry; give --retries N".to_owned()
            }
            _ if self.is_of_events() => match report.events {
                None => "unknown: replies were not read as events; give --stream, or a gRPC method that streams replies",
                Some(_) if self.figure == AssertedFigure::Unmarked => {
                    "unknown: no end mark was given; give --end-mark TEXT"
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

    /// True if the figure is about the end mark of streams.
    pub const fn is_of_end_mark(&self) -> bool {
        matches!(self.figure, AssertedFigure::Unmarked)
    }

    /// Returns the objective for the search. `None` unless it bounds a time from above, or a rate of streams from below.
    pub(crate) fn objective(&self) -> Option<Objective> {
        let upper = matches!(self.relation, Relation::Below | Relation::AtMost);
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

    /// True if it can be an objective: it bounds a response time, a first event or a gap from above, or the rate of
    /// streams from below.
    pub fn is_objective(&self) -> bool {
        self.objective().is_some()
    }
}

impl Report {
    /// Checks the assertions and stores the results for every form of the report.
    pub fn check(&mut self, assertions: &[Assertion]) {
        let checked = assertions.iter().map(|assertion| assertion.check(self));
        self.assertions = checked.collect();
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_figure_and_outcome() {
        const PAGE: &str = include_str!("../../../docs/reference/load.md");
        for figure in figures() {
            assert!(PAGE.contains(&format!("`{figure}`")), "{figure}");
        }
        for outcome in Outcome::ALL {
            let row = format!("| `{}` | {} |", outcome.name(), outcome.meaning());
            assert!(PAGE.contains(&row), "{row}");
        }
    }

    #[test]
    fn figures_of_events_are_unknown_without_events_and_count_failures() {
        let holds = |text: &str, report: &Report| text.parse::<Assertion>().unwrap().holds(report);
        let mut report = crate::testing::report(90, 10);
        for text in ["first<1h", "gap<1h", "events>0/s", "no-end-mark<=100%"] {
            assert!(!holds(text, &report), "{text}");
        }
        let tally = crate::EventTally {
            with_end_mark: 88,
            ..crate::EventTally::default()
        };
        report.events = Some(crate::EventsReport::new(&tally, 1.0, true));
        assert!(holds("no-end-mark<=12%", &report) && !holds("no-end-mark<12%", &report));
        for text in ["first<1h", "gap<1h", "events>0/s"] {
            assert!(!holds(text, &report), "{text}");
        }
    }

    #[test]
    fn figures_and_bounds_are_read() {
        for text in [
            "p99<200ms",
            "mean <= 1s",
            "errors<1%",
            "rate>=500/s",
            "timed-out<=0.1%",
        ] {
            let assertion: Assertion = text.parse().unwrap();
            assert_eq!(assertion.to_string(), text);
        }
        assert!("p99<200ms".parse::<Assertion>().unwrap().is_objective());
        assert!(!"p99>200ms".parse::<Assertion>().unwrap().is_objective());
        assert!(!"errors<1%".parse::<Assertion>().unwrap().is_objective());
        for (text, is_objective) in [
            ("first<1s", true),
            ("gap-p50<=1s", true),
            ("events>20/s", true),
            ("events<20/s", false),
            ("events>0/s", false),
            ("gap>1s", false),
            ("no-end-mark<1%", false),
        ] {
            let assertion: Assertion = text.parse().unwrap();
            assert_eq!(assertion.is_objective(), is_objective, "{text}");
        }
        assert_eq!(
            "ok-p99<1s".parse::<Assertion>().unwrap().to_string(),
            "ok-p99<1s"
        );
    }

    #[test]
    fn a_reply_that_never_came_is_longer_than_any_bound() {
        use crate::testing::report;
        // Of ten requests, four are answered after 100 ms and six are given up after 500 ms.
        let half = report(4, 6);
        let check = |text: &str| text.parse::<Assertion>().unwrap().check(&half);
        let holds = |text: &str| check(text).holds;
        assert!(holds("p50>1s") && !holds("p50<10s") && !holds("mean<10s") && !holds("max<1h"));
        assert!(holds("ok-p99<200ms") && holds("timed-out<=60%") && !holds("errors<1%"));
        assert!(
            check("p50<200ms").found.starts_with("> 500"),
            "{:?}",
            check("p50<200ms")
        );
        // Ten requests do not determine a quantile of 99.9 %.
        assert!(!holds("p999<1h") && !holds("p999>1us"));
        assert!(check("p999<1h").found.contains("needs 5000"));
        let silent = report(0, 5);
        let check = |text: &str| text.parse::<Assertion>().unwrap().check(&silent);
        assert_eq!(check("p50<1s").found, "no reply");
        assert_eq!(check("ok-p50<1s").found, "no good reply");
        assert!(!check("ok-p50>1us").holds);
    }

    #[test]
    fn mistakes_name_the_remedy() {
        let refused = |text: &str| text.parse::<Assertion>().unwrap_err().to_string();
        assert!(refused("p99").contains("p99<200ms"));
        assert!(refused("p98<1ms").contains("did you mean p9"));
        assert!(refused("timeout<1%").contains("did you mean timed-out"));
        assert!(refused("p99<200").contains("no unit"));
        assert!(refused("errors<5ms").contains("share"));
        assert!(refused("errors<1").contains("write 1%, or 100%"));
        assert!("errors<=0".parse::<Assertion>().is_ok());
    }
}

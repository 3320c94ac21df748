//! `--assert 'p99<200ms'`: one figure of a report against one bound.
//!
//! A response time is compared with a time, a share (`errors`, or an outcome's name) with a
//! percentage, `rate` with a rate. The same grammar names the objective of `--find`.

use std::fmt;
use std::str::FromStr;

use posthaste_stats::Statistic;
use posthaste_units::{Rate, Ratio, Span};
use thiserror::Error;

use crate::find::Goal;
use crate::outcome::Outcome;
use crate::report::Report;

/// A bound on one figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    figure: Figure,
    relation: Relation,
    /// Milliseconds, a share, or events per second, as the figure has it.
    bound: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Response(Statistic),
    Errors,
    Share(Outcome),
    Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Why an assertion cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssertionError {
    /// No relation in it.
    #[error("{0:?} compares nothing: write for example 'p99<200ms', 'errors<1%' or 'rate>=500/s'")]
    NoRelation(String),
    /// A figure that is not in the report.
    #[error("{figure:?} is not a figure of the report{}: use {}", nearest(figure), figures().join(", "))]
    UnknownFigure {
        /// What was given.
        figure: String,
    },
    /// A bound that does not fit the figure.
    #[error("{figure} is bounded by {kind}: {reason}")]
    Bound {
        /// The figure.
        figure: String,
        /// A time, a share or a rate.
        kind: &'static str,
        /// The parser's word.
        reason: String,
    },
    /// A share without its sign, which could be meant in two ways.
    #[error("{figure} is bounded by a share: write {value}%, or {meant} if that is meant")]
    Bare {
        /// The figure.
        figure: String,
        /// What was given.
        value: String,
        /// The same share in percent.
        meant: String,
    },
}

fn figures() -> Vec<&'static str> {
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.name());
    let times = Statistic::ALL.iter().map(|statistic| statistic.key());
    times.chain(["errors", "rate"]).chain(outcomes).collect()
}

fn nearest(figure: &str) -> String {
    figures()
        .into_iter()
        .map(|known| (strsim::jaro_winkler(figure, known), known))
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
        let figure = Figure::named(name)?;
        Ok(Self {
            figure,
            relation,
            bound: figure.bound(name, value)?,
            text: text.to_owned(),
        })
    }
}

impl Figure {
    fn named(name: &str) -> Result<Self, AssertionError> {
        let time = Statistic::ALL.into_iter().find(|time| time.key() == name);
        if let Some(time) = time {
            return Ok(Self::Response(time));
        }
        match (name, Outcome::from_name(name)) {
            ("errors", _) => Ok(Self::Errors),
            ("rate", _) => Ok(Self::Rate),
            (_, Some(outcome)) => Ok(Self::Share(outcome)),
            _ => Err(AssertionError::UnknownFigure {
                figure: name.to_owned(),
            }),
        }
    }

    fn bound(self, name: &str, value: &str) -> Result<f64, AssertionError> {
        let error = |kind, reason: posthaste_units::ParseError| AssertionError::Bound {
            figure: name.to_owned(),
            kind,
            reason: reason.to_string(),
        };
        match self {
            Self::Response(_) => value
                .parse::<Span>()
                .map(Span::as_millis_f64)
                .map_err(|reason| error("a time", reason)),
            Self::Errors | Self::Share(_) => {
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
            Self::Rate => value
                .parse::<Rate>()
                .map(Rate::as_per_second)
                .map_err(|reason| error("a rate", reason)),
        }
    }

    fn of(self, report: &Report) -> f64 {
        let share = |count: u64| count as f64 / report.intended.max(1) as f64;
        match self {
            Self::Response(statistic) => report.response_time_ms.value(statistic),
            Self::Errors => report.error_share(),
            Self::Share(outcome) => share(report.outcomes[outcome]),
            Self::Rate => report.achieved_rate,
        }
    }
}

impl Assertion {
    /// Whether the report meets it. A run without a request meets none, one without a complete
    /// reply no bound on times.
    pub fn holds(&self, report: &Report) -> bool {
        let timeless = matches!(self.figure, Figure::Response(_));
        if report.intended == 0 || (timeless && report.response_time_ms.count == 0) {
            return false;
        }
        let value = self.figure.of(report);
        match self.relation {
            Relation::Below => value < self.bound,
            Relation::AtMost => value <= self.bound,
            Relation::Above => value > self.bound,
            Relation::AtLeast => value >= self.bound,
        }
    }

    /// What the report has instead, in words.
    pub fn found(&self, report: &Report) -> String {
        let value = self.figure.of(report);
        match self.figure {
            Figure::Response(_) => Span::from_secs_f64(value / 1e3).to_string(),
            Figure::Errors | Figure::Share(_) => Ratio::new(value)
                .map(|share| share.to_string())
                .unwrap_or_default(),
            Figure::Rate => format!("{value:.1}/s"),
        }
    }

    /// The objective as the search sees it; `None` where it does not bound a response time from above.
    pub(crate) fn goal(&self) -> Option<Goal> {
        let Figure::Response(statistic) = self.figure else {
            return None;
        };
        self.is_objective().then(|| Goal {
            quantile: match statistic {
                Statistic::Mean => None,
                Statistic::P50 => Some(0.5),
                Statistic::P90 => Some(0.9),
                Statistic::P95 => Some(0.95),
                Statistic::P99 => Some(0.99),
                Statistic::P999 => Some(0.999),
                Statistic::Max => Some(1.0),
            },
            bound: Span::from_secs_f64(self.bound / 1e3),
            tolerance: self.tolerance(),
        })
    }

    /// The share of requests that may fail: what is not there has no time, and if more fail than have times
    /// beyond the bound, the bound is as good as missed.
    fn tolerance(&self) -> f64 {
        match self.figure {
            Figure::Response(Statistic::P999) => 0.001,
            Figure::Response(Statistic::Max) => f64::MIN_POSITIVE,
            _ => 0.01,
        }
    }

    /// So many times the bound, where it bounds a time that as few replies decide as may fail
    /// ([`Self::tolerance`]): one that has not come by then fails it as much as one that never comes.
    pub(crate) fn hopeless_after(&self, times: f64) -> Span {
        match self.figure {
            Figure::Response(Statistic::P99 | Statistic::P999 | Statistic::Max) => {
                Span::from_secs_f64(self.bound * times / 1e3)
            }
            _ => Span::MAX,
        }
    }

    /// Whether it bounds a response time from above, as an objective must.
    pub fn is_objective(&self) -> bool {
        let upper = matches!(self.relation, Relation::Below | Relation::AtMost);
        upper && matches!(self.figure, Figure::Response(_)) && self.bound > 0.0
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
        const PAGE: &str = include_str!("../../../docs/load.md");
        for figure in figures() {
            assert!(PAGE.contains(&format!("`{figure}`")), "{figure}");
        }
        for outcome in Outcome::ALL {
            let row = format!("| `{}` | {} |", outcome.name(), outcome.meaning());
            assert!(PAGE.contains(&row), "{row}");
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

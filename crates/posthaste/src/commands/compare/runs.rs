//! The adapter between reports and the comparison: the only file of this command that knows what a report holds.

use std::path::{Path, PathBuf};

use posthaste_load::report::{Report, read_report};
use posthaste_stats::{Measured, Share, Statistic, Summary};
use posthaste_units::Span;

use crate::commands::Failure;

/// Options without which two runs measure different things: when requests are due, and for how long.
const SCHEDULE: [&str; 2] = ["pace", "warm_up"];
/// Confidence with which a share of requests without a reply is more or less than a quantile leaves.
const CONFIDENCE: f64 = 0.95;

/// One run.
pub(super) struct Run {
    pub(super) name: PathBuf,
    /// Options as reports name them, with their values in words.
    pub(super) plan: Vec<(String, String)>,
    /// The run ended before its plan did.
    pub(super) stopped: bool,
    /// Mean response time of all requests due.
    pub(super) mean: Measured,
    /// Mean response time of the replies alone.
    pub(super) mean_of_replies: Measured,
    pub(super) p50: Measured,
    pub(super) p99: Measured,
    pub(super) errors: Share,
    /// Statistics that inform and are not judged, by name.
    pub(super) others: Vec<(String, Measured)>,
}

impl Run {
    /// Reads the report in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let report = read_report(folder).map_err(Failure::usage)?;
        let replies = Replies::of(&report);
        let response = &report.response_time_ms;
        let other = |statistic: Statistic| {
            let name = format!("{} of response time", statistic.key());
            (name, replies.quantile(response, statistic))
        };
        let service = |statistic: Statistic| {
            let name = format!("{} of service time, replies only", statistic.key());
            (name, known(&report.service_time_ms, statistic))
        };
        let others = [Statistic::P90, Statistic::P95, Statistic::P999].map(other);
        let services = [Statistic::Mean, Statistic::P50, Statistic::P99].map(service);
        let mean_of_replies = known(response, Statistic::Mean);
        Ok(Self {
            name: folder.to_owned(),
            plan: options(&report)?,
            stopped: report.stopped,
            mean: match replies.missing.hits {
                0 => mean_of_replies,
                _ => replies.beyond(None),
            },
            mean_of_replies,
            p50: replies.quantile(response, Statistic::P50),
            p99: replies.quantile(response, Statistic::P99),
            errors: Share {
                hits: report.outcomes.failed(),
                trials: report.intended,
            },
            others: others.into_iter().chain(services).collect(),
        })
    }

    /// The values of the options that must be equal in all runs.
    pub(super) fn schedule(&self) -> impl Iterator<Item = &(String, String)> {
        let of_schedule = |(name, _): &&(String, String)| SCHEDULE.contains(&name.as_str());
        self.plan.iter().filter(of_schedule)
    }
}

fn options(report: &Report) -> Result<Vec<(String, String)>, Failure> {
    use serde_json::Value;
    let plan = serde_json::to_value(&report.plan).map_err(Failure::run)?;
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let pairs = plan.as_object().into_iter().flatten();
    Ok(pairs
        .map(|(name, value)| (name.clone(), words(value)))
        .collect())
}

/// A statistic of a distribution in which every request has a time.
fn known(summary: &Summary, statistic: Statistic) -> Measured {
    match summary.count {
        0 => Measured::Absent,
        _ => Measured::Known {
            value: summary.value(statistic),
            interval: summary.interval(statistic),
        },
    }
}

/// Places the replies among all requests due: those without a reply are longer than any bound.
///
/// Reports hold the distribution of the replies alone. A quantile among the replies is taken from it as it stands, which
/// is a little low where some requests have none.
struct Replies {
    missing: Share,
    /// Milliseconds that a request without a reply exceeds.
    bound: f64,
}

impl Replies {
    fn of(report: &Report) -> Self {
        use posthaste_load::Outcome;
        let complete: u64 = [Outcome::Ok, Outcome::SoapFault, Outcome::StatusError]
            .into_iter()
            .map(|outcome| report.outcomes[outcome])
            .sum();
        let timeout = report.plan.timeout.parse::<Span>();
        let timeout = timeout.map_or(f64::INFINITY, Span::as_millis_f64);
        Self {
            missing: Share {
                hits: report.intended.saturating_sub(complete),
                trials: report.intended,
            },
            bound: timeout.max(report.response_time_ms.max),
        }
    }

    fn quantile(&self, summary: &Summary, statistic: Statistic) -> Measured {
        let above = match statistic {
            Statistic::P50 => 0.5,
            Statistic::P90 => 0.1,
            Statistic::P95 => 0.05,
            Statistic::P99 => 0.01,
            Statistic::P999 => 0.001,
            Statistic::Mean | Statistic::Max => return Measured::Absent,
        };
        if self.missing.trials == 0 {
            return Measured::Absent;
        }
        let (fewest, most) = self.missing.interval(CONFIDENCE);
        if self.missing.value() > above {
            return self.beyond((fewest > above).then_some(self.bound));
        }
        match known(summary, statistic) {
            Measured::Known {
                value,
                interval: Some([low, _]),
            } if self.missing.hits > 0 && most > above => Measured::Known {
                value,
                interval: Some([low, f64::INFINITY]),
            },
            other => other,
        }
    }

    fn beyond(&self, low: Option<f64>) -> Measured {
        Measured::Beyond {
            bound: self.bound,
            low,
        }
    }
}

//! Reports as runs of a comparison. The only file of the comparison that depends on the form of a report.

use std::path::{Path, PathBuf};

use posthaste_stats::{
    CensoredSummary, MeasuredStatistic, Share, Statistic, StatisticReading, Summary,
};

use crate::report::{DirectoryError, Report, read_report};

/// Options that must be equal for comparable runs: due times and duration.
const SCHEDULE: [&str; 2] = ["pace", "warm_up"];

/// One run of a side.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    pub(super) name: PathBuf,
    /// Options as reports name them, with their values in words.
    pub(super) plan: Vec<(String, String)>,
    /// True if the run ended before its plan did.
    pub(super) stopped: bool,
    /// True if the generator was the limit, so that response times are its own.
    pub(super) limited: bool,
    /// Mean response time of all requests due.
    pub(super) mean: MeasuredStatistic,
    /// Mean response time of good replies only.
    pub(super) mean_of_ok: MeasuredStatistic,
    pub(super) p50: MeasuredStatistic,
    pub(super) p99: MeasuredStatistic,
    pub(super) errors: Share,
    /// Statistics that inform and are not judged, by name.
    pub(super) others: Vec<(String, MeasuredStatistic)>,
}

impl ComparedRun {
    /// Reads the report in a folder.
    pub fn read(folder: &Path) -> Result<Self, DirectoryError> {
        let report = read_report(folder)?;
        let response = |statistic| of_all(&report.response_time_ms, statistic);
        let other = |statistic: Statistic| {
            let name = format!("{} of response time, all due", statistic.key());
            (name, response(statistic))
        };
        let service = |statistic: Statistic| {
            let name = format!("{} of service time, replies only", statistic.key());
            (name, known(&report.service_time_ms, statistic))
        };
        let others = [Statistic::P90, Statistic::P95, Statistic::P999].map(other);
        let services = [Statistic::Mean, Statistic::P50, Statistic::P99].map(service);
        Ok(Self {
            name: folder.to_owned(),
            plan: options(&report),
            stopped: report.stopped,
            limited: report.generator.limited,
            mean: response(Statistic::Mean),
            mean_of_ok: known(&report.ok_response_time_ms, Statistic::Mean),
            p50: response(Statistic::P50),
            p99: response(Statistic::P99),
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

fn options(report: &Report) -> Vec<(String, String)> {
    use serde_json::Value;
    let plan = serde_json::to_value(&report.plan).expect("a plan in words is JSON");
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let pairs = plan.as_object().into_iter().flatten();
    pairs
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

/// A statistic of a distribution in which every request has a time.
fn known(summary: &Summary, statistic: Statistic) -> MeasuredStatistic {
    match summary.count {
        0 => MeasuredStatistic::Absent,
        _ => MeasuredStatistic::Known {
            value: summary.value(statistic),
            interval: summary.interval(statistic),
        },
    }
}

/// A statistic of all requests due. Some of them may have no reply.
fn of_all(summary: &CensoredSummary, statistic: Statistic) -> MeasuredStatistic {
    // An open upper end says that the run is too short, unless requests without a reply are near.
    let interval = summary
        .interval(statistic)
        .filter(|[_, high]| summary.is_censored() || high.known().is_some());
    let low = interval.and_then(|[low, _]| low.known());
    match summary.reading(statistic) {
        StatisticReading::Known(value) => MeasuredStatistic::Known {
            value,
            interval: low.map(|low| {
                let high = interval.and_then(|[_, high]| high.known());
                [low, high.unwrap_or(f64::INFINITY)]
            }),
        },
        StatisticReading::Above(bound) => MeasuredStatistic::Beyond { bound, low },
        StatisticReading::Never => MeasuredStatistic::Beyond {
            bound: f64::INFINITY,
            low,
        },
        StatisticReading::Unknown => MeasuredStatistic::Absent,
    }
}

//! Statistics of a censored distribution, in milliseconds.
//!
//! In JSON an unknown number is `null`. If it falls among values without a known time, `lower_bounds` contains its
//! lower bound, or `null` if no waiting time would have been enough. The other keys are those of
//! [`Summary`](crate::Summary).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistic::{FEWEST_FOR_P999, Statistic};
use crate::{CensoredHistogram, IntervalEstimate, Recorder, Time};

/// A statistic of a censored distribution, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum StatisticReading {
    /// Measured.
    Known(f64),
    /// Longer than this.
    Above(f64),
    /// Longer than every bound: it falls among requests that ended without a reply.
    Never,
    /// Too few values.
    #[default]
    Unknown,
}

/// Statistics of a [`CensoredHistogram`] or a [`Recorder`] with values of unknown length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "SummaryDocument", into = "SummaryDocument")]
pub struct CensoredSummary {
    /// Number of all values.
    pub count: u64,
    /// Number of values with a known time.
    pub answered: u64,
    readings: [StatisticReading; Statistic::ALL.len()],
    intervals: [Option<[StatisticReading; 2]>; Statistic::ALL.len()],
}

impl StatisticReading {
    /// The number, if known.
    pub fn known(self) -> Option<f64> {
        match self {
            Self::Known(ms) => Some(ms),
            _ => None,
        }
    }

    /// The number for comparisons: infinite if it falls among values without a known time, `None` if there are too few
    /// values.
    pub fn or_infinite(self) -> Option<f64> {
        match self {
            Self::Known(ms) => Some(ms),
            Self::Above(_) | Self::Never => Some(f64::INFINITY),
            Self::Unknown => None,
        }
    }

    /// The reading as text. `known` formats a number of milliseconds.
    pub fn format(self, known: impl Fn(f64) -> String) -> String {
        match self {
            Self::Known(ms) => known(ms),
            Self::Above(ms) => format!("> {}", known(ms)),
            Self::Never => "no reply".to_owned(),
            Self::Unknown => "-".to_owned(),
        }
    }
}

impl From<Time> for StatisticReading {
    fn from(time: Time) -> Self {
        match time {
            Time::Known(time) => Self::Known(time.as_millis_f64()),
            Time::Above(bound) => Self::Above(bound.as_millis_f64()),
            Time::Never => Self::Never,
        }
    }
}

impl CensoredSummary {
    /// The statistic.
    pub fn reading(&self, statistic: Statistic) -> StatisticReading {
        self.readings[statistic as usize]
    }

    /// Its 95 % interval, if there is one. An upper end may fall among values without a known time.
    pub fn interval(&self, statistic: Statistic) -> Option<[StatisticReading; 2]> {
        self.intervals[statistic as usize]
    }

    /// Returns true if some values have no known time.
    pub fn is_censored(&self) -> bool {
        self.answered < self.count
    }
}

impl CensoredHistogram {
    /// The statistics without intervals.
    pub fn summary(&self) -> CensoredSummary {
        let count = self.count();
        let reading = |statistic: Statistic| match statistic {
            _ if count == 0 => StatisticReading::Unknown,
            Statistic::P999 if count < FEWEST_FOR_P999 => StatisticReading::Unknown,
            Statistic::Mean => self.mean().into(),
            Statistic::Max => self.max().into(),
            _ => statistic
                .quantile()
                .map_or(StatisticReading::Unknown, |share| {
                    self.quantile(share).into()
                }),
        };
        CensoredSummary {
            count,
            answered: self.known().count(),
            readings: Statistic::ALL.map(reading),
            intervals: [None; Statistic::ALL.len()],
        }
    }
}

impl Recorder {
    /// The statistics of all values, with intervals if the run is long enough.
    pub fn censored_summary(&self) -> CensoredSummary {
        let interval = |estimate: IntervalEstimate| {
            let (low, high) = estimate.interval?;
            Some([low.into(), high.into()])
        };
        CensoredSummary {
            intervals: Statistic::ALL.map(|statistic| match statistic {
                Statistic::Mean => interval(self.mean()),
                _ => interval(self.quantile(statistic.quantile()?)),
            }),
            ..self.distribution().summary()
        }
    }
}

/// JSON form of the summary.
#[derive(Default, Serialize, Deserialize)]
struct SummaryDocument {
    count: u64,
    answered: u64,
    censored: bool,
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lower_bounds: BTreeMap<String, Option<f64>>,
    /// An unknown end is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean_interval: Option<[Option<f64>; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p50_interval: Option<[Option<f64>; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p90_interval: Option<[Option<f64>; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p95_interval: Option<[Option<f64>; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p99_interval: Option<[Option<f64>; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p999_interval: Option<[Option<f64>; 2]>,
}

impl From<CensoredSummary> for SummaryDocument {
    fn from(summary: CensoredSummary) -> Self {
        let number = |statistic| summary.reading(statistic).known();
        let interval = |statistic| Some(summary.interval(statistic)?.map(StatisticReading::known));
        let unknown = Statistic::ALL.into_iter().filter_map(|statistic| {
            let bound = match summary.reading(statistic) {
                StatisticReading::Above(bound) => Some(bound),
                StatisticReading::Never => None,
                StatisticReading::Known(_) | StatisticReading::Unknown => return None,
            };
            Some((statistic.key().to_owned(), bound))
        });
        Self {
            count: summary.count,
            answered: summary.answered,
            censored: summary.is_censored(),
            mean: number(Statistic::Mean),
            p50: number(Statistic::P50),
            p90: number(Statistic::P90),
            p95: number(Statistic::P95),
            p99: number(Statistic::P99),
            p999: number(Statistic::P999),
            max: number(Statistic::Max),
            lower_bounds: unknown.collect(),
            mean_interval: interval(Statistic::Mean),
            p50_interval: interval(Statistic::P50),
            p90_interval: interval(Statistic::P90),
            p95_interval: interval(Statistic::P95),
            p99_interval: interval(Statistic::P99),
            p999_interval: interval(Statistic::P999),
        }
    }
}

impl From<SummaryDocument> for CensoredSummary {
    fn from(document: SummaryDocument) -> Self {
        let number = |statistic| match statistic {
            Statistic::Mean => document.mean,
            Statistic::P50 => document.p50,
            Statistic::P90 => document.p90,
            Statistic::P95 => document.p95,
            Statistic::P99 => document.p99,
            Statistic::P999 => document.p999,
            Statistic::Max => document.max,
        };
        let interval = |statistic| match statistic {
            Statistic::Mean => document.mean_interval,
            Statistic::P50 => document.p50_interval,
            Statistic::P90 => document.p90_interval,
            Statistic::P95 => document.p95_interval,
            Statistic::P99 => document.p99_interval,
            Statistic::P999 => document.p999_interval,
            Statistic::Max => None,
        };
        let reading = |statistic: Statistic| {
            let bound = document.lower_bounds.get(statistic.key());
            match (number(statistic), bound) {
                (Some(ms), _) => StatisticReading::Known(ms),
                (None, Some(Some(bound))) => StatisticReading::Above(*bound),
                (None, Some(None)) => StatisticReading::Never,
                (None, None) => StatisticReading::Unknown,
            }
        };
        let end = |ms: Option<f64>| ms.map_or(StatisticReading::Never, StatisticReading::Known);
        Self {
            count: document.count,
            answered: document.answered,
            readings: Statistic::ALL.map(reading),
            intervals: Statistic::ALL.map(|statistic| Some(interval(statistic)?.map(end))),
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;

    /// One value per millisecond. `unanswered` in ten were abandoned after 500 ms.
    fn recorder(count: u64, unanswered: u64) -> Recorder {
        let mut recorder = Recorder::new();
        for n in 0..count {
            let at = Span::from_millis(n);
            if n * 7919 % 10 < unanswered {
                recorder.record_censored(at, Some(Span::from_millis(500)));
            } else {
                recorder.record(at, Span::from_micros(1_000 + n * 6271 % 1000));
            }
        }
        recorder
    }

    #[test]
    fn numbers_among_the_censored_are_null_with_their_bound() {
        let summary = recorder(3_000, 5).censored_summary();
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(
            (&json["count"], &json["answered"]),
            (&3_000.into(), &1_500.into())
        );
        assert_eq!(json["censored"], true);
        assert!(json["p50"].is_f64() && json["p99"].is_null() && json["mean"].is_null());
        assert!((json["lower_bounds"]["p99"].as_f64().unwrap() - 500.0).abs() < 1.0);
        assert!(json["p999"].is_null() && json["lower_bounds"].get("p999").is_none());
        let p99 = summary.reading(Statistic::P99);
        assert!(p99.format(|ms| format!("{ms:.0} ms")).starts_with("> 500"));
        assert_eq!(p99.or_infinite(), Some(f64::INFINITY));
    }

    #[test]
    fn it_travels_as_json() {
        let mut refused = CensoredHistogram::new();
        refused.record_censored(None);
        let all = [recorder(20_000, 0), recorder(20_000, 2)].map(|all| all.censored_summary());
        for summary in all
            .into_iter()
            .chain([refused.summary(), CensoredHistogram::new().summary()])
        {
            let json = serde_json::to_string(&summary).unwrap();
            let back: CensoredSummary = serde_json::from_str(&json).unwrap();
            assert_eq!(back.readings, summary.readings);
            assert_eq!(back.is_censored(), summary.is_censored());
            let known = |ends: Option<[StatisticReading; 2]>| {
                ends.map(|ends| ends.map(StatisticReading::known))
            };
            for statistic in Statistic::ALL {
                assert_eq!(
                    known(back.interval(statistic)),
                    known(summary.interval(statistic))
                );
            }
        }
    }

    #[test]
    fn without_censored_values_it_is_the_plain_summary() {
        let recorder = recorder(20_000, 0);
        let (plain, summary) = (recorder.summary(), recorder.censored_summary());
        for statistic in Statistic::ALL {
            assert_eq!(
                summary.reading(statistic),
                StatisticReading::Known(plain.value(statistic))
            );
            let ends = summary
                .interval(statistic)
                .map(|ends| ends.map(|end| end.known().unwrap()));
            assert_eq!(ends, plain.interval(statistic));
        }
        assert!(!summary.is_censored());
    }

    #[test]
    fn nothing_recorded_is_unknown() {
        let empty = Recorder::new().censored_summary();
        assert!(
            Statistic::ALL
                .iter()
                .all(|s| empty.reading(*s) == StatisticReading::Unknown)
        );
    }
}

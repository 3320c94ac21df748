//! Streams of events in a report.

use posthaste_stats::{CensoredHistogram, CensoredSummary};
use serde::{Deserialize, Serialize};

use posthaste_load::EventTally;

/// Share of the streams that reach the reported rate.
pub(crate) const REACHED_BY: f64 = 0.95;

/// The events of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventsReport {
    /// Events, without end marks.
    pub count: u64,
    /// Events per second of the measured time.
    pub rate: f64,
    /// Due to first event, of all requests due. One without an event is longer than any bound.
    pub first_ms: CensoredSummary,
    /// Gaps between events. The wait after the last event of a reply that broke off is longer than its bound.
    pub gap_ms: CensoredSummary,
    /// Events per second of a stream, reached by 95 % of the streams with events at two instants or more. 0 if fewer
    /// reach any rate, because their streams broke off; `null` without such a stream.
    pub stream_rate: Option<f64>,
    /// Complete replies with two events or more, all of which arrived at one instant. They have no gap and no rate.
    #[serde(default)]
    pub at_once: u64,
    /// Complete replies with the end mark, if the plan has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub with_end_mark: Option<u64>,
    /// Complete replies without the end mark, if the plan has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub without_end_mark: Option<u64>,
}

impl EventsReport {
    pub(crate) fn new(tally: &EventTally, seconds: f64, has_end_mark: bool) -> Self {
        Self {
            count: tally.events,
            rate: tally.events as f64 / seconds.max(1e-9),
            first_ms: tally.first.censored_summary(),
            gap_ms: tally.gaps.censored_summary(),
            stream_rate: stream_rate(tally.periods.distribution()),
            at_once: tally.at_once,
            with_end_mark: has_end_mark.then_some(tally.with_end_mark),
            without_end_mark: has_end_mark.then_some(tally.without_end_mark),
        }
    }
}

/// The rate that 95 % of the streams reach: the inverse of the 95th percentile of their mean gaps.
fn stream_rate(periods: &CensoredHistogram) -> Option<f64> {
    if periods.count() == 0 {
        return None;
    }
    let period = periods.quantile(REACHED_BY).known();
    Some(period.map_or(0.0, |period| 1.0 / period.as_secs_f64().max(1e-9)))
}

//! Sample of one second, from data of the clients, the gateway and the broker.

use std::collections::BTreeMap;

use posthaste_load::{Outcome, Tick};
use posthaste_stats::Histogram;
use posthaste_units::Span;
use serde::Serialize;

use crate::controls::{Controls, KINDS, MARKS};
use crate::metrics::Metrics;

/// State of the system in one second. Missing values are null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the start of the demo.
    pub(crate) at: f64,
    /// Demand, in requests per second.
    pub(crate) demand: u32,
    /// Busy share of the shop, as reported by the shop.
    pub(crate) busy: Option<f64>,
    /// Price of a request in EUR.
    pub(crate) price: Option<f64>,
    /// Share of replies that were compressed.
    pub(crate) compressed: Option<f64>,
    /// Requests in service at the gateway, and their limit.
    pub(crate) in_service: Option<f64>,
    pub(crate) limit: Option<f64>,
    /// Response times over all kinds.
    pub(crate) times: ResponseTimes,
    /// Outcomes by kind, as in [`KINDS`].
    pub(crate) kinds: [KindOutcomes; KINDS.len()],
    /// Replies per second by the mark of their packets. Marks without replies are omitted.
    pub(crate) marks: BTreeMap<String, f64>,
    /// Offers at the broker.
    pub(crate) offers: Vec<OfferRow>,
    /// Share of a processor used by page and sampling.
    pub(crate) own: f64,
}

/// Response times of successful requests, in ms; null if there were none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct ResponseTimes {
    p50: Option<f64>,
    p99: Option<f64>,
}

/// Outcomes of a kind's requests, per second.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct KindOutcomes {
    /// Successful.
    pub(crate) served: f64,
    /// Not sent or rejected because of the price.
    pub(crate) dear: f64,
    /// Rejected for lack of capacity.
    pub(crate) away: f64,
    /// Timed out, broken, or dropped for lack of connections.
    pub(crate) failed: f64,
    #[serde(flatten)]
    pub(crate) times: ResponseTimes,
}

/// An offer at the broker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OfferRow {
    pub(crate) name: String,
    pub(crate) provider: String,
    /// Price with currency.
    pub(crate) price: String,
    /// Seconds until it expires.
    pub(crate) left: f64,
}

/// Values of the gateway's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterValues {
    replies: f64,
    compressed: f64,
    marked: [f64; MARKS.len()],
}

impl KindOutcomes {
    /// Rates of the outcomes that a run reported for `span`.
    pub(crate) fn from_tick(span: Span, tick: &Tick) -> Self {
        let seconds = span.as_secs_f64().max(1e-3);
        let status = |wanted: &[u16]| {
            let counts = wanted.iter().filter_map(|status| tick.statuses.get(status));
            counts.sum::<u64>()
        };
        let ok = tick.outcomes[Outcome::Ok];
        let dear = tick.outcomes[Outcome::Declined] + status(&[402]);
        let away = status(&[429, 503]);
        let unfinished = tick.outcomes[Outcome::InFlight];
        let failed = tick.outcomes.total() - unfinished - ok - dear - away;
        let per_second = |count: u64| rounded(count as f64 / seconds, 1);
        Self {
            served: per_second(ok),
            dear: per_second(dear),
            away: per_second(away),
            failed: per_second(failed),
            times: ResponseTimes::from_histogram(tick.responses.ok()),
        }
    }

    /// All finished requests.
    pub(crate) fn all(&self) -> f64 {
        self.served + self.dear + self.away + self.failed
    }
}

impl ResponseTimes {
    pub(crate) fn from_histogram(times: &Histogram) -> Self {
        let quantile = |quantile: f64| {
            let some = times.count() > 0;
            some.then(|| rounded(times.quantile(quantile).as_millis_f64(), 1))
        };
        Self {
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    }
}

impl Sample {
    /// Sample with the gateway's values only. `grown` has the values of its counters a second ago, and is updated.
    pub(crate) fn from_metrics(
        metrics: &Metrics,
        grown: &mut CounterValues,
        controls: &Controls,
    ) -> Self {
        let now = CounterValues {
            replies: metrics.sum("decisions_total", ""),
            compressed: metrics.sum("decisions_total", "decision=\"compressed\""),
            marked: MARKS.map(|mark| metrics.sum("marks_total", &format!("mark=\"{mark}\""))),
        };
        let marked = MARKS.iter().zip(now.marked).zip(grown.marked);
        let marks = marked
            .map(|((mark, now), before)| (mark.to_string(), rounded(now - before, 1)))
            .filter(|(_, replies)| *replies > 0.0)
            .collect();
        let replies = now.replies - grown.replies;
        let compressed = now.compressed - grown.compressed;
        *grown = now;
        let gauge = |name: &str| metrics.value(name).map(|value| rounded(value, 3));
        Self {
            at: 0.0,
            demand: controls.demand,
            busy: gauge("busy_ratio"),
            price: gauge("price"),
            compressed: (replies > 0.0).then(|| rounded(compressed / replies, 3)),
            in_service: gauge("in_service"),
            limit: Some(metrics.sum("service_limit", "")).filter(|limit| *limit > 0.0),
            times: ResponseTimes::default(),
            kinds: Default::default(),
            marks,
            offers: Vec::new(),
            own: 0.0,
        }
    }
}

/// Rounds to `digits` decimals. More are not shown, and events stay short.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(compressed: u32, plain: u32) -> Metrics {
        Metrics::read(&format!(
            "posthaste_gateway_busy_ratio 0.81234
posthaste_gateway_price 0.3
posthaste_gateway_decisions_total{{decision=\"compressed\"}} {compressed}
posthaste_gateway_decisions_total{{decision=\"plain\"}} {plain}
posthaste_gateway_marks_total{{mark=\"ef\",origin=\"prefer\"}} {compressed}
"
        ))
    }

    #[test]
    fn a_sample_holds_what_happened_since_the_last() {
        let mut grown = CounterValues::default();
        let controls = Controls::default();
        let first = Sample::from_metrics(&metrics(1, 3), &mut grown, &controls);
        assert_eq!(first.compressed, Some(0.25));
        let second = Sample::from_metrics(&metrics(4, 3), &mut grown, &controls);
        assert_eq!(second.compressed, Some(1.0));
        assert_eq!(second.marks, [("ef".to_owned(), 3.0)].into());
        let third = Sample::from_metrics(&metrics(4, 3), &mut grown, &controls);
        let json = serde_json::to_value(&third).unwrap();
        assert_eq!(json["compressed"], serde_json::Value::Null);
        assert_eq!(json["busy"], 0.812);
        assert_eq!(json["limit"], serde_json::Value::Null);
        assert_eq!(json["kinds"].as_array().unwrap().len(), 4);
        assert_eq!(json["kinds"][0]["p99"], serde_json::Value::Null);
    }

    #[test]
    fn every_end_is_counted_once() {
        let mut tick = Tick::default();
        tick.outcomes[Outcome::Ok] = 10;
        tick.outcomes[Outcome::StatusError] = 9;
        tick.statuses = [(200, 10), (402, 4), (429, 1), (503, 2), (504, 2)].into();
        tick.outcomes[Outcome::TimedOut] = 3;
        tick.outcomes[Outcome::InFlight] = 7;
        tick.outcomes[Outcome::Declined] = 2;
        tick.responses.record(Outcome::Ok, Span::from_millis(20));
        let ends = KindOutcomes::from_tick(Span::from_secs(2), &tick);
        assert_eq!((ends.served, ends.dear, ends.away), (5.0, 3.0, 1.5));
        assert_eq!((ends.failed, ends.all()), (2.5, 12.0));
        let json = serde_json::to_value(ends).unwrap();
        let p99 = json["p99"].as_f64().unwrap();
        assert!((19.9..20.1).contains(&p99), "{p99}");
    }
}

//! Main statistics of a run, in milliseconds.
//!
//! Every command reports times as JSON in this form. Its keys do not change.

use serde::{Deserialize, Serialize};

use crate::statistic::{FEWEST_FOR_P999, Statistic};
use crate::{Histogram, IntervalEstimate, Recorder};

/// Times in milliseconds. All are zero, without intervals and `p999`, if `count` is 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of recorded values.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile. `None` (`null` in JSON) with fewer than 5,000 values.
    pub p999: Option<f64>,
    /// The largest value.
    pub max: f64,
    /// 95 % interval of the true mean; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<[f64; 2]>,
    /// 95 % interval of the true median; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_interval: Option<[f64; 2]>,
    /// 95 % interval of the true p90; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_interval: Option<[f64; 2]>,
    /// 95 % interval of the true p95; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_interval: Option<[f64; 2]>,
    /// 95 % interval of the true p99; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_interval: Option<[f64; 2]>,
    /// 95 % interval of the true p999; absent with too little data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_interval: Option<[f64; 2]>,
}

impl Summary {
    /// The statistic in milliseconds. NaN if there are too few values for it.
    pub fn value(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::P50 => self.p50,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999.unwrap_or(f64::NAN),
            Statistic::Max => self.max,
        }
    }

    /// Its 95 % interval in milliseconds, if there is one.
    pub fn interval(&self, statistic: Statistic) -> Option<[f64; 2]> {
        match statistic {
            Statistic::Mean => self.mean_interval,
            Statistic::P50 => self.p50_interval,
            Statistic::P90 => self.p90_interval,
            Statistic::P95 => self.p95_interval,
            Statistic::P99 => self.p99_interval,
            Statistic::P999 => self.p999_interval,
            Statistic::Max => None,
        }
    }
}

impl Histogram {
    /// The statistics without intervals, because a histogram does not know the order of its values.
    pub fn summary(&self) -> Summary {
        let quantile = |share| self.quantile(share).as_millis_f64();
        Summary {
            count: self.count(),
            mean: self.mean().as_millis_f64(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: (self.count() >= FEWEST_FOR_P999).then(|| quantile(0.999)),
            max: self.max().as_millis_f64(),
            ..Summary::default()
        }
    }
}

impl Recorder {
    /// The statistics, with intervals if the run is long enough.
    ///
    /// # Panics
    /// Some values have no known time. [`Self::censored_summary`] is their summary.
    pub fn summary(&self) -> Summary {
        let censored = self.distribution().censored();
        assert_eq!(censored, 0, "a summary would leave out censored values");
        let interval = |estimate: IntervalEstimate| {
            let (low, high) = estimate.interval?;
            Some([low.known()?.as_millis_f64(), high.known()?.as_millis_f64()])
        };
        let quantile = |share| interval(self.quantile(share));
        Summary {
            mean_interval: interval(self.mean()),
            p50_interval: quantile(0.5),
            p90_interval: quantile(0.9),
            p95_interval: quantile(0.95),
            p99_interval: quantile(0.99),
            p999_interval: quantile(0.999),
            ..self.histogram().summary()
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;

    #[test]
    fn keys_are_as_promised() {
        let empty = serde_json::to_value(Recorder::new().summary()).unwrap();
        let plain = serde_json::json!({"count": 0, "mean": 0.0, "p50": 0.0, "p90": 0.0, "p95": 0.0,
            "p99": 0.0, "p999": null, "max": 0.0});
        assert_eq!(empty, plain);
    }

    #[test]
    fn travels_as_json_with_intervals_where_known() {
        let mut recorder = Recorder::new();
        for n in 0..3_000 {
            recorder.record(
                Span::from_millis(n),
                Span::from_micros(1_000 + n * 7919 % 1000),
            );
        }
        let summary = recorder.summary();
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["p50_interval"].as_array().unwrap().len(), 2);
        assert!(
            json.get("p999_interval").is_none(),
            "three values beyond p999 prove nothing"
        );
        assert_eq!(
            serde_json::from_value::<Summary>(json.clone()).unwrap(),
            summary
        );
        for statistic in Statistic::ALL {
            // 3,000 values do not suffice for p999.
            let value = Some(summary.value(statistic)).filter(|value| !value.is_nan());
            assert_eq!(json[statistic.key()].as_f64(), value);
            assert_eq!(serde_json::to_value(statistic).unwrap(), statistic.key());
        }
    }
}

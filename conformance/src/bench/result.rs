//! A benchmark's run as data: the machine, and figures with their spread, peers and targets.
//!
//! Numbers are numbers with units. The table at the terminal and the page in docs/ are derived from them (`figure_text`,
//! `page`). A run is kept as `conformance/results/<bench>/<date>-<commit>.json` (`kept`).

use serde::{Deserialize, Serialize};

use crate::bench::median;

/// One run of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// Name of the benchmark, or the folder of figures that other commands produce.
    pub(crate) bench: String,
    /// Start of the run in UTC (RFC 3339). Only the day or the month if no more is known.
    pub(crate) date: String,
    /// Measured commit, with the suffix `-dirty` if files differed; `unknown` if none was noted.
    pub(crate) commit: String,
    pub(crate) command: String,
    pub(crate) machine: Machine,
    pub(crate) figures: Vec<Figure>,
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    /// Other work on the machine during the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) remark: String,
}

/// One figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    #[serde(rename = "what")]
    pub(crate) name: String,
    /// Absent for a statement that holds or not, and for a failed measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ours: Option<Measure>,
    /// Measured in the same run, or calculated for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) peers: Vec<BenchPeer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) remark: String,
    /// Command of this figure, if it differs from that of the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) command: String,
    /// True for a figure that explains others. It is kept and printed, but not on the page.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) detail: bool,
}

/// A number with its unit and spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measure {
    /// The median if `n` measurements were made, otherwise the only value.
    pub(crate) value: f64,
    /// The total that `value` is a part of.
    #[serde(rename = "of", default, skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spread: Option<Spread>,
    /// Number of measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) n: Option<u64>,
}

/// Two bounds around a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) kind: Bounds,
}

/// Meaning of the two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bounds {
    /// The lowest and the highest measurement.
    Range,
    /// The quartiles.
    MiddleHalf,
    /// An interval that holds the true value with 95 % confidence.
    #[serde(rename = "interval-95")]
    Interval95,
}

/// The same figure of another program, of theory, or of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BenchPeer {
    pub(crate) name: String,
    pub(crate) measure: Measure,
    /// Ratio of our value to the peer's. The median ratio if pairs were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
}

/// Target of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    #[serde(rename = "words")]
    pub(crate) text: String,
    pub(crate) holds: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A number with six significant digits unless it is whole. More digits would be noise.
fn rounded(value: f64) -> f64 {
    if value.is_finite() && value.fract() != 0.0 {
        format!("{value:.5e}").parse().expect("it was a number")
    } else {
        value
    }
}

impl Measure {
    pub(crate) fn new(value: f64, unit: &str) -> Self {
        Self {
            value: rounded(value),
            total: None,
            unit: unit.to_owned(),
            spread: None,
            n: None,
        }
    }

    /// The median of measurements and their range.
    pub(crate) fn median(values: &[f64], unit: &str) -> Self {
        let low = values.iter().copied().fold(f64::NAN, f64::min);
        let high = values.iter().copied().fold(f64::NAN, f64::max);
        Self::new(median(values), unit)
            .between(low, high, Bounds::Range)
            .n(values.len() as u64)
    }

    /// A part of a total.
    pub(crate) fn part(value: u64, total: u64, unit: &str) -> Self {
        Self {
            total: Some(total),
            ..Self::new(value as f64, unit)
        }
    }

    /// Adds these bounds, unless one is NaN.
    pub(crate) fn between(self, low: f64, high: f64, kind: Bounds) -> Self {
        let (low, high) = (rounded(low), rounded(high));
        let spread = (low.is_finite() && high.is_finite()).then_some(Spread { low, high, kind });
        Self { spread, ..self }
    }

    /// Adds the number of measurements.
    pub(crate) fn n(self, n: u64) -> Self {
        Self { n: Some(n), ..self }
    }
}

impl Figure {
    /// A figure. A value of NaN counts as not measured.
    pub(crate) fn new(name: impl Into<String>, ours: Measure) -> Self {
        let figure = Self::sentence(name);
        if ours.value.is_finite() {
            Self {
                ours: Some(ours),
                ..figure
            }
        } else {
            figure.remark("not measured")
        }
    }

    /// A statement without a number, which holds or not.
    pub(crate) fn sentence(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ours: None,
            peers: Vec::new(),
            target: None,
            remark: String::new(),
            command: String::new(),
            detail: false,
        }
    }

    /// Adds a peer, with the ratio of the two values.
    pub(crate) fn peer(self, name: &str, measure: Measure) -> Self {
        let ratio = self.ours.as_ref().map(|ours| ours.value / measure.value);
        self.paired(name, measure, ratio.unwrap_or(f64::NAN))
    }

    /// Adds a peer, with the median ratio of pairs.
    pub(crate) fn paired(mut self, name: &str, measure: Measure, ratio: f64) -> Self {
        if measure.value.is_finite() {
            self.peers.push(BenchPeer {
                name: name.to_owned(),
                measure,
                ratio: Some(rounded(ratio)).filter(|ratio| ratio.is_finite()),
            });
        }
        self
    }

    pub(crate) fn target(mut self, text: impl Into<String>, holds: bool) -> Self {
        let text = text.into();
        self.target = Some(Target { text, holds });
        self
    }

    pub(crate) fn remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = remark.into();
        self
    }

    /// Removes it from the page.
    pub(crate) fn detail(mut self) -> Self {
        self.detail = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_its_range() {
        let measure = Measure::median(&[3.0, 1.0, 2.000_000_4], "µs");
        assert_eq!((measure.value, measure.n), (2.0, Some(3)));
        let spread = measure.spread.expect("there are three");
        assert_eq!((spread.low, spread.high), (1.0, 3.0));
    }

    #[test]
    fn a_figure_without_a_number_is_not_measured() {
        let figure = Figure::new("a", Measure::median(&[], "ms"))
            .peer("b", Measure::new(1.0, "ms"))
            .peer("c", Measure::new(f64::NAN, "ms"));
        assert_eq!((figure.ours, &*figure.remark), (None, "not measured"));
        assert_eq!(figure.peers.len(), 1);
        assert_eq!(figure.peers[0].ratio, None);
    }

    #[test]
    fn a_peer_has_the_ratio() {
        let ours = Measure::new(11.1, "µs");
        let figure = Figure::new("a", ours).peer("wrk", Measure::new(12.6, "µs"));
        assert_eq!(figure.peers[0].ratio, Some(0.880_952));
    }
}

//! Axes: the settings in a chart, and the range, ticks and mapping computed from them.
//!
//! Plotters does the mapping and chooses round numbers. This module decides the range of an axis and the values that
//! cannot be placed on it. It knows nothing of colours and text widths.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{IntoLogRange, LogCoord};

use crate::number::Unit;

/// Distribution of values along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths. Starts at zero unless the data are far from it.
    #[default]
    Linear,
    /// Equal ratios have equal lengths. Values of zero and below cannot be placed and are counted.
    Log,
    /// Quantiles from 0 to below 1 at 1/(1-q): each additional nine has the same length.
    Percentile,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity on the axis, without its unit: "mean response time".
    pub label: String,
    /// Unit, printed with every number.
    pub unit: Unit,
    /// Distribution of the values.
    pub scale: Scale,
    /// Start and end; `None` fits them to the data. A range that is empty or cannot be placed on the scale is ignored.
    pub range: Option<(f64, f64)>,
}

/// A second x axis above the chart: the paper's own numbers as a linear function of x.
#[derive(Clone, Debug, PartialEq)]
pub struct TopAxis {
    /// Quantity and its source: "the paper's server".
    pub label: String,
    /// Unit, printed with every number.
    pub unit: Unit,
    /// Top value = `factor` × x + `offset`. A factor of zero omits the axis.
    pub factor: f64,
    /// Top value at x = 0.
    pub offset: f64,
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            ..Self::default()
        }
    }

    /// Creates a logarithmic axis.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            scale: Scale::Log,
            ..Self::linear(label, unit)
        }
    }

    /// Creates an axis of percentiles, for values from 0 to below 1.
    pub fn percentile(label: impl Into<String>) -> Self {
        Self {
            scale: Scale::Percentile,
            ..Self::linear(label, Unit::Share)
        }
    }

    /// Sets a fixed range.
    pub fn range(mut self, from: f64, to: f64) -> Self {
        self.range = Some((from, to));
        self
    }

    /// Position of `value` on the scale, before the mapping to the page; `None` if it cannot be placed.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let placed = match self.scale {
            Scale::Linear => value,
            Scale::Log => Some(value).filter(|value| *value > 0.0)?,
            Scale::Percentile => Some(1.0 / (1.0 - value)).filter(|p| *p >= 1.0)?,
        };
        // Sums and differences of placed values must also be finite.
        (placed.is_finite() && placed.abs() < 1e150 && (placed == 0.0 || placed.abs() > 1e-150))
            .then_some(placed)
    }

    /// Formats `value` for a tooltip.
    pub(crate) fn exact(&self, value: f64) -> String {
        if self.scale == Scale::Percentile {
            percentile_label(value)
        } else {
            self.unit.exact(value)
        }
    }

    /// Fits the axis to `placed` values, with approximately at most `most` ticks.
    pub(crate) fn fit(&self, placed: impl Iterator<Item = f64>, most: usize) -> Fitted {
        let (low, high) = placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let fixed = self
            .range
            .and_then(|(from, to)| Some((self.position(from)?, self.position(to)?)))
            .filter(|(from, to)| from < to);
        let data = (low <= high).then_some((low, high));
        match self.scale {
            Scale::Linear => self.fit_linear(fixed, data, most),
            Scale::Log => self.fit_log(fixed, data, most),
            Scale::Percentile => fit_percentile(fixed, data),
        }
    }

    fn fit_linear(
        &self,
        fixed: Option<(f64, f64)>,
        data: Option<(f64, f64)>,
        most: usize,
    ) -> Fitted {
        let (low, high) = fixed.unwrap_or_else(|| {
            let (low, high) = data.unwrap_or((0.0, 1.0));
            reach(low, high)
        });
        let mut ticks = round_numbers(low, high, most);
        let (mut low, mut high) = (low, high);
        if let (None, [first, second, ..]) = (fixed, &*ticks) {
            // Extends both ends to the next round number, so that the axis ends on a tick.
            let (step, first, last) = (second - first, *first, ticks[ticks.len() - 1]);
            if first - low > step * 1e-6 {
                low = snap(first - step, step);
                ticks.insert(0, low);
            }
            if high - last > step * 1e-6 {
                high = snap(last + step, step);
                ticks.push(high);
            }
        }
        let labels = self.unit.linear_labels(&ticks);
        Fitted {
            coord: Coord {
                low,
                high,
                log: false,
            },
            ticks: ticks.into_iter().zip(labels).collect(),
        }
    }

    fn fit_log(&self, fixed: Option<(f64, f64)>, data: Option<(f64, f64)>, most: usize) -> Fitted {
        let (mut low, mut high) = fixed.or(data).unwrap_or((1.0, 10.0));
        let fine = (high / low).log10() <= 2.0;
        if fixed.is_none() {
            (low, high) = (one_two_five_below(low), one_two_five_below(high));
            if data.is_some_and(|(_, top)| high < top * (1.0 - 1e-9)) {
                high = next_one_two_five(high);
            }
            if low >= high {
                (low, high) = (one_two_five_below(low * 0.6), next_one_two_five(high));
            }
        }
        let decades = ((high / low).log10() / most as f64).ceil().max(1.0) as i32;
        let from = low.log10().floor() as i32 - 1;
        let to = high.log10().ceil() as i32 + 1;
        let multiples: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = (from..=to)
            .filter(|exponent| exponent.rem_euclid(decades) == 0)
            .flat_map(|exponent| multiples.iter().map(move |m| power(*m, exponent)))
            .filter(|tick| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(tick))
            .map(|tick| (tick, self.unit.log_label(tick)))
            .collect();
        Fitted {
            coord: Coord {
                low,
                high,
                log: true,
            },
            ticks,
        }
    }
}

fn fit_percentile(fixed: Option<(f64, f64)>, data: Option<(f64, f64)>) -> Fitted {
    let (low, high) = fixed.unwrap_or_else(|| (1.0, data.map_or(100.0, |(_, high)| high.max(2.0))));
    let decades = std::iter::successors(Some(10.0), |tick| Some(tick * 10.0)).take(15);
    let ticks = [1.0, 2.0, 4.0]
        .into_iter()
        .chain(decades)
        .filter(|tick| (low..=high * (1.0 + 1e-9)).contains(tick))
        .filter(|tick| *tick != 4.0 || high < 1e3)
        .map(|tick| (tick, percentile_label(1.0 - 1.0 / tick)))
        .collect();
    Fitted {
        coord: Coord {
            low,
            high,
            log: true,
        },
        ticks,
    }
}

/// Formats a share as a percentile, with all its nines: 0.999 is "99.9 %".
fn percentile_label(share: f64) -> String {
    let nines = (-(1.0 - share).max(1e-12).log10()).max(0.0).ceil() as usize;
    let text = format!("{:.*}", nines.max(2) + 1, share.abs() * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Range of a linear axis for honest display of the data: from zero unless the data are far from it, and never empty.
fn reach(low: f64, high: f64) -> (f64, f64) {
    let span = high - low;
    let low = if low > 0.0 && low < 3.0 * span {
        0.0
    } else {
        low
    };
    let high = if high < 0.0 && -high < 3.0 * span {
        0.0
    } else {
        high
    };
    let size = low.abs().max(high.abs());
    if high - low > size * 1e-9 {
        return (low, high);
    }
    match (low, high) {
        (0.0, 0.0) => (0.0, 1.0),
        (low, high) if low > 0.0 => (0.0, high),
        (low, _) => (low, 0.0),
    }
}

/// Round numbers between `low` and `high`, by plotters, which needs a range near one.
fn round_numbers(low: f64, high: f64, most: usize) -> Vec<f64> {
    let power = 10f64.powf((high - low).log10().floor());
    let coord = RangedCoordf64::from(low / power..high / power);
    coord
        .key_points(most.max(2))
        .into_iter()
        .map(|tick| tick * power)
        .collect()
}

/// Removes the rounding error of a multiplied step from zero.
fn snap(value: f64, step: f64) -> f64 {
    if value.abs() < step * 1e-6 {
        0.0
    } else {
        value
    }
}

/// `multiple` × 10^`exponent`, exactly as the literal is parsed.
fn power(multiple: f64, exponent: i32) -> f64 {
    format!("{multiple}e{exponent}").parse().unwrap_or(multiple)
}

fn one_two_five_below(value: f64) -> f64 {
    let exponent = (value * (1.0 + 1e-9)).log10().floor() as i32;
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|multiple| power(multiple, exponent))
        .find(|tick| *tick <= value * (1.0 + 1e-9))
        .unwrap_or(value)
}

fn next_one_two_five(value: f64) -> f64 {
    one_two_five_below(value * 2.6)
}

/// An axis with its range, mapping and ticks (placed value and label).
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) coord: Coord,
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Mapping of placed values to the page, linear or logarithmic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coord {
    pub(crate) low: f64,
    pub(crate) high: f64,
    log: bool,
}

impl Coord {
    /// Returns true if `placed` is between the axis's ends.
    pub(crate) fn shows(&self, placed: f64) -> bool {
        let slack = |end: f64| {
            if self.log {
                end * 1e-9
            } else {
                (self.high - self.low) * 1e-9
            }
        };
        (self.low - slack(self.low)..=self.high + slack(self.high)).contains(&placed)
    }

    /// Clamps `placed` so that the page's integers can represent it.
    fn near(&self, placed: f64) -> f64 {
        if self.log {
            let ratio = (self.high / self.low).powi(8);
            placed.clamp(
                (self.low / ratio).max(f64::MIN_POSITIVE),
                (self.high * ratio).min(f64::MAX),
            )
        } else {
            let reach = (self.high - self.low) * 50.0;
            placed.clamp(self.low - reach, self.high + reach)
        }
    }
}

impl Ranged for Coord {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let value = self.near(*value);
        if self.log {
            LogCoord::from((self.low..self.high).log_scale()).map(&value, limit)
        } else {
            RangedCoordf64::from(self.low..self.high).map(&value, limit)
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        round_numbers(self.low, self.high, hint.max_num_points())
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl TopAxis {
    /// Ticks within the range of `coord`: their x values and labels.
    pub(crate) fn ticks(&self, coord: Coord, most: usize) -> Vec<(f64, String)> {
        let top = |x: f64| self.factor * x + self.offset;
        let (from, to) = (top(coord.low), top(coord.high));
        let (low, high) = (from.min(to), from.max(to));
        let usable = self.factor != 0.0 && low.is_finite() && high.is_finite();
        if !usable || high - low <= low.abs().max(high.abs()) * 1e-9 {
            return Vec::new();
        }
        let ticks = round_numbers(low, high, most);
        let labels = self.unit.linear_labels(&ticks);
        ticks
            .into_iter()
            .map(|tick| (tick - self.offset) / self.factor)
            .zip(labels)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let placed = values.iter().filter_map(|value| axis.position(*value));
        let ticks = axis.fit(placed, 7).ticks;
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_axes_end_on_round_numbers() {
        let axis = Axis::linear("rate", Unit::PerSecond);
        assert_eq!(
            labels(&axis, &[3.0, 212.0]),
            ["0/s", "50/s", "100/s", "150/s", "200/s", "250/s"]
        );
        let far = Axis::linear("t", Unit::Millis);
        assert_eq!(
            labels(&far, &[1000.0, 1001.0]),
            [
                "1.0000 s", "1.0002 s", "1.0004 s", "1.0006 s", "1.0008 s", "1.0010 s"
            ]
        );
        assert_eq!(labels(&axis, &[]).len(), 6);
    }

    #[test]
    fn logarithmic_axes_have_decades_or_finer() {
        let axis = Axis::log("time", Unit::Millis);
        assert_eq!(
            labels(&axis, &[0.3, 8.0]),
            ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms", "10 ms"]
        );
        assert_eq!(labels(&axis, &[1.0, 1e4]).len(), 5);
        assert_eq!(labels(&axis, &[1.0]), ["500 µs", "1 ms", "2 ms"]);
        assert!(labels(&axis, &[1e-100, 1e100]).len() <= 9);
    }

    #[test]
    fn percentile_axes_count_nines() {
        let axis = Axis::percentile("percentile");
        assert_eq!(
            labels(&axis, &[0.0, 0.9999]),
            ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]
        );
        assert_eq!(axis.position(1.0), None);
        assert_eq!(axis.position(-0.1), None);
    }

    #[test]
    fn a_top_axis_stands_at_the_inverse() {
        let top = TopAxis {
            label: "paper".into(),
            unit: Unit::PerSecond,
            factor: 145.0,
            offset: 0.0,
        };
        let coord = Coord {
            low: 0.0,
            high: 2.0,
            log: false,
        };
        let ticks = top.ticks(coord, 7);
        assert!(
            ticks.contains(&(100.0 / 145.0, "100/s".into())),
            "{ticks:?}"
        );
        assert!(TopAxis { factor: 0.0, ..top }.ticks(coord, 7).is_empty());
    }

    #[test]
    fn any_two_numbers_make_an_axis() {
        let odd = [
            -1e149,
            -5.0,
            -1e-140,
            0.0,
            1e-140,
            0.1,
            3.0,
            1e16,
            1e16 + 2.0,
            1e149,
        ];
        for (low, high) in odd.iter().flat_map(|a| odd.iter().map(move |b| (*a, *b))) {
            for scale in [Scale::Linear, Scale::Log, Scale::Percentile] {
                for range in [None, Some((low, high))] {
                    let axis = Axis {
                        scale,
                        range,
                        ..Axis::default()
                    };
                    let fitted =
                        axis.fit([low, high].into_iter().filter_map(|v| axis.position(v)), 7);
                    assert!(
                        fitted.coord.low < fitted.coord.high,
                        "{low} {high} {scale:?}"
                    );
                    assert!(fitted.ticks.len() < 40, "{low} {high} {scale:?}");
                    for value in odd {
                        fitted.coord.map(&value.max(1e-140), (0, 6400));
                    }
                }
            }
        }
    }
}

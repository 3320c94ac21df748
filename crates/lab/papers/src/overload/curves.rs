//! Shared parts of this paper's pictures and claims: axes, series and a fitted line.

use posthaste_draw::{Along, Axis, Chart, Mark, Point, Role, Series, TopAxis, Unit};
use posthaste_study::{COMPLETE_REPLIES, MEDIANS, Records};

use super::paper;
use super::testbed::RequestForm;
use crate::testbed::curves::reservations;

/// Points of the curve of `form` in the open loop: (rate / capacity of the page, value).
pub(super) fn places(records: &Records, form: RequestForm, column: &str) -> Vec<(f64, f64)> {
    let rows = records.table("points").rows();
    rows.filter(|row| row.text("form") == form.key())
        .map(|row| (row.number("rate_ratio"), row.number(column)))
        .collect()
}

/// A measured quantity: the columns of its median and its interval.
pub(super) type Quantity = [&'static str; 3];

pub(super) const RESPONSE: Quantity = ["response_ms", "response_low_ms", "response_high_ms"];
pub(super) const THROUGHPUT: Quantity = [
    "throughput_per_s",
    "throughput_low_per_s",
    "throughput_high_per_s",
];
pub(super) const REJECTED: Quantity = [
    "rejected_per_s",
    "rejected_low_per_s",
    "rejected_high_per_s",
];

/// The curve of `form`, with the interval of the runs at each point.
pub(super) fn series(records: &Records, form: RequestForm, quantity: Quantity) -> Series {
    let rows = records.table("points").rows();
    let points = rows
        .filter(|row| row.text("form") == form.key())
        .map(|row| {
            let [y, low, high] = quantity.map(|column| row.number(column));
            let mut point = Point::new(row.number("rate_ratio"), y).with_interval(low, high);
            point.hint = format!(
                "{:.0}/s offered, {} runs",
                row.number("rate_per_s"),
                row.number("runs")
            );
            point
        });
    Series::line(form.name(), points)
}

/// A chart over the request rate as a multiple of the page's capacity, with the paper's axis above.
pub(super) fn over_rate(records: &Records, title: &str, y: Axis, forms: &[RequestForm]) -> Chart {
    let x = Axis::linear("request rate / capacity of the page", Unit::Count);
    let mut chart = Chart::new(title, x, y);
    chart.top = Some(TopAxis {
        label: "the paper's request rate".to_owned(),
        unit: Unit::PerSecond,
        factor: paper::PAGE_CAPACITY,
        offset: 0.0,
    });
    let page = records.number("capacity page");
    chart.notes = forms
        .iter()
        .map(|form| {
            let number = |suffix: &str| records.number(&format!("capacity {}{suffix}", form.key()));
            let (capacity, low, high) = (number(""), number(" low"), number(" high"));
            let share = capacity / page;
            format!(
                "{}: capacity here {capacity:.0}/s ({low:.0} to {high:.0}), {share:.2} of the page's.",
                form.name()
            )
        })
        .collect();
    chart.notes.push(MEDIANS.to_owned());
    chart.notes.push(COMPLETE_REPLIES.to_owned());
    chart.notes.extend(reservations(records));
    chart
}

/// Marks at the rates where the paper's response times rise.
pub(super) fn paper_capacities() -> Vec<Mark> {
    [
        (paper::SERVICE_CAPACITY, "Web service, 145/s"),
        (paper::PAGE_CAPACITY, "page, 180/s"),
    ]
    .map(|(rate, label)| Mark {
        along: Along::X,
        at: rate / paper::PAGE_CAPACITY,
        label: label.to_owned(),
        role: Role::Paper,
    })
    .into()
}

/// A least-squares line and its coefficient of determination.
pub(super) struct FittedLine {
    pub(super) slope: f64,
    pub(super) r_squared: f64,
}

/// Fits a line to `places`.
pub(super) fn fit(places: &[(f64, f64)]) -> FittedLine {
    let count = places.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| places.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |value: &dyn Fn(f64, f64) -> f64| {
        places
            .iter()
            .map(|point| value(point.0 - x, point.1 - y))
            .sum::<f64>()
    };
    let (xx, xy, yy) = (
        sum(&|dx, _| dx * dx),
        sum(&|dx, dy| dx * dy),
        sum(&|_, dy| dy * dy),
    );
    FittedLine {
        slope: xy / xx,
        r_squared: xy * xy / (xx * yy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_fitted_to_its_points() {
        let line = fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]);
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.r_squared - 1.0).abs() < 1e-12);
    }
}

//! overload/fig-06: mean response time in a closed loop.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{COMPLETE_REPLIES, Check, Figure, MEDIANS, NOISE, Plot, Records};
use posthaste_units::Span;

use super::curves::{Quantity, RESPONSE, fit};
use super::testbed::RequestForm;
use super::{PAPER, closed};
use crate::testbed::curves::reservations;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-06",
    title: "closed loop: mean response time against clients",
    claim: "With singleclient (1 to 500 clients that each wait for their reply), the mean response time grows linearly with the number of clients.",
    paper: PAPER,
    budget: Span::from_secs(15),
    study: &closed::STUDY,
    plot,
    checks,
    differs: include_str!("fig_06.md").trim_ascii(),
};

/// A chart over the number of clients, with one line per form.
pub(super) fn chart(records: &Records, title: &str, y: Axis, quantity: Quantity) -> Chart {
    let mut chart = Chart::new(title, Axis::linear("clients", Unit::Count), y);
    chart.series = RequestForm::PAIR
        .map(|form| {
            let rows = records.table("points").rows();
            let points = rows
                .filter(|row| row.text("form") == form.key())
                .map(|row| {
                    let [y, low, high] = quantity.map(|column| row.number(column));
                    Point::new(row.number("clients"), y).with_interval(low, high)
                });
            Series::line(form.name(), points)
        })
        .into();
    chart.notes = [MEDIANS, COMPLETE_REPLIES].map(str::to_owned).into();
    chart.notes.extend(reservations(records));
    chart
}

/// Number of clients with the value of `column`.
pub(super) fn places(records: &Records, form: RequestForm, column: &str) -> Vec<(f64, f64)> {
    let rows = records.table("points").rows();
    rows.filter(|row| row.text("form") == form.key())
        .map(|row| (row.number("clients"), row.number(column)))
        .collect()
}

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    let title = "Closed loop: mean response time";
    vec![Plot::Chart(chart(records, title, y, RESPONSE))]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounting(records);
    for form in RequestForm::PAIR {
        let line = fit(&places(records, form, "response_ms"));
        checks.push(Check::claim(
            line.r_squared > 0.98,
            format!("{}: the mean response time grows linearly with the clients, {:.3} ms each; a straight line explains {:.1} % of it.", form.name(), line.slope, 100.0 * line.r_squared),
        ).because(NOISE));
    }
    checks
}

//! The relative increase on all lines: the figures of the 56 combinations, one for every service.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};

use super::cells::{Cells, quantile};
use super::curves::of_both;
use super::instrument;
use super::line::{BANDWIDTHS, DELAYS, Line};
use super::service::{SEGMENT, Service};
use crate::check::Check;
use crate::figure::Plot;
use crate::records::Records;

/// The increase over the delay, with each kernel.
pub(super) fn plot(records: &Records, service: &'static Service) -> Vec<Plot> {
    of_both(records, service)
        .map(|cells| Plot::Chart(chart(&cells)))
        .into()
}

/// A curve for each bandwidth.
fn chart(cells: &Cells<'_>) -> Chart {
    let title = format!(
        "{}: relative increase, {}",
        cells.service.name,
        cells.name()
    );
    let x = Axis::linear("end-to-end delay", Unit::Millis);
    let mut chart = Chart::new(title, x, Axis::linear("increase", Unit::Share));
    let series = |kbit: &u32| {
        let increase = |ms| cells.increase(Line { kbit: *kbit, ms }) / 100.0;
        let points = DELAYS.map(|ms| Point::new(f64::from(ms), increase(ms)));
        Series::line(format!("{kbit} kbit/s"), points)
    };
    chart.series = BANDWIDTHS.iter().map(series).collect();
    let late = cells.service.late(SEGMENT);
    chart.notes.push(format!(
        "The mean of a loss at positions {} to {} over one at position {}.",
        late.start(),
        late.end(),
        cells.service.reference(SEGMENT)
    ));
    chart
}

/// Whether a late loss takes longer on every line, with each kernel.
pub(super) fn checks(records: &Records, service: &'static Service) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    for cells in of_both(records, service) {
        let increases = cells.on_all_lines(Cells::increase);
        let longer = increases.iter().filter(|increase| **increase > 0.0).count();
        let at = |share| quantile(&increases, share);
        checks.push(Check::claim(
            longer == 56,
            format!("{}: a late loss takes longer on {longer} of 56 lines, by {:.0} % at the median ({:.0} to {:.0} %).", cells.name(), at(0.5), at(0.0), at(1.0)),
        ));
    }
    checks
}

//! The relative increase on all lines: figures of the 56 combinations, one figure per service.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{Check, Plot, Records};

use super::cells::{Cells, quantile};
use super::line::{BANDWIDTHS, DELAYS, NetworkLine};
use super::service::AUTHOR;
use super::stack::{FREEBSD, LINUX};

/// Increase at the median, in percent, below which late losses are repaired like others: a timeout costs more.
const REPAIRED: f64 = 15.0;

/// Reason of a difference below that increase.
const AS_OTHERS: &str = "this stack repairs a late loss without a timeout, so that it takes about as long as any other.";

/// Increase over the delay, one picture for each of `all`.
pub(super) fn plot(all: &[Cells<'_>]) -> Vec<Plot> {
    all.iter().map(|cells| Plot::Chart(chart(cells))).collect()
}

/// One curve per bandwidth.
fn chart(cells: &Cells<'_>) -> Chart {
    let title = format!(
        "{}: relative increase, {}",
        cells.service.name,
        cells.name()
    );
    let x = Axis::linear("end-to-end delay", Unit::Millis);
    let mut chart = Chart::new(title, x, Axis::linear("increase", Unit::Share));
    let series = |kbit: &u32| {
        let increase = |ms| cells.increase(NetworkLine { kbit: *kbit, ms }) / 100.0;
        let points = DELAYS.map(|ms| Point::new(f64::from(ms), increase(ms)));
        Series::line(format!("{kbit} kbit/s"), points)
    };
    chart.series = BANDWIDTHS.iter().map(series).collect();
    chart.ordered = true;
    let late = cells.late();
    chart.notes.push(format!(
        "The mean of a loss at positions {} to {} over one at position {}.",
        late.start(),
        late.end(),
        cells.reference()
    ));
    chart
}

/// Checks for each of `all` that a late loss takes longer on every line.
pub(super) fn checks(all: &[Cells<'_>]) -> Vec<Check> {
    let mut checks = Vec::new();
    for cells in all {
        let increases = cells.on_all_lines(Cells::increase);
        let longer = increases.iter().filter(|increase| **increase > 0.0).count();
        let at = |share| quantile(&increases, share);
        let check = Check::claim(
            longer == 56,
            format!(
                "{}: a late loss takes longer on {longer} of 56 lines, by {:.0} % at the median ({:.0} to {:.0} %).",
                cells.name(),
                at(0.5),
                at(0.0),
                at(1.0)
            ),
        );
        checks.push(if increases.len() == 56 && at(0.5) < REPAIRED {
            check.because(AS_OTHERS).better_if(true)
        } else {
            check
        });
    }
    checks
}

/// Compares the paper's two stacks, both simulated on the same lines.
pub(super) fn is_less_with_linux(records: &Records) -> Check {
    let [freebsd, linux] = [&FREEBSD, &LINUX].map(|stack| {
        let cells = stack.cells(records, &AUTHOR);
        quantile(&cells.on_all_lines(Cells::increase), 0.5)
    });
    Check::claim(
        linux < freebsd,
        format!(
            "Linux 2.6.15 takes {linux:.0} % longer at the median of all lines, FreeBSD 6.0 on the same lines {freebsd:.0} %: the paper finds considerably less with Linux."
        ),
    )
}

/// Compares the increase of the shorter reply with the longer one's, and states the effect of the reference. The paper
/// gives no reference for this service, and a loss at the reference has a cost, too.
pub(super) fn is_larger(shorter: &Cells<'_>, longer: &Cells<'_>) -> Check {
    let both = [shorter, longer];
    let median = |value: &dyn Fn(&Cells<'_>, NetworkLine) -> f64| {
        both.map(|cells| quantile(&cells.on_all_lines(value), 0.5))
    };
    let [here, there] = median(&|cells, line| cells.increase(line));
    let [over_none, over_none_there] = median(&|cells, line| cells.increase_over(line, 0));
    let at = |cells: &Cells<'_>, line| cells.ms(line, cells.reference());
    let [cost, cost_there] = median(&|cells, line| at(cells, line) - cells.ms(line, 0));
    let [position, position_there] = both.map(|cells| cells.reference());
    Check::claim(
        here > there,
        format!(
            "{}: the increase is {here:.0} % at the median, Author's {there:.0} %. The reference matters: a loss at position {position} costs {cost:.0} ms itself, at Author's position {position_there} {cost_there:.0} ms. Over no loss at all a late one takes {over_none:.0} % longer, with Author {over_none_there:.0} %.",
            shorter.name()
        ),
    ).because("the loss at the position that is the reference costs time itself here, and more with the shorter reply; compared with no loss the two replies differ little.")
}

//! packet-loss/fig-07: Linux, Author, 60 ms, by position of the loss.

use super::curves::{by_position, of_both, of_linux, parts};
use super::line::Line;
use super::service::AUTHOR;
use super::stack::LINUX;
use super::{BUDGET, DIFFERS, PAPER, instrument, sweep};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

const NEAR: Line = Line { kbit: 300, ms: 10 };
const LINE: Line = Line { kbit: 300, ms: 60 };

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-07",
    title: "Linux, Author, 60 ms: response time by position of the loss",
    claim: "At a longer delay the penalty of a late loss is larger in milliseconds and smaller in percent.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let all = of_linux(records, &AUTHOR);
    let chart = by_position(&all, LINE, None);
    vec![Plot::Chart(chart), Plot::Bars(parts(&all[0], LINE))]
}

fn checks(records: &Records) -> Vec<Check> {
    let [then, _] = of_both(records, &AUTHOR);
    let mut checks = instrument::all(records);
    for cells in [then, LINUX.cells(records, &AUTHOR)] {
        let (name, reference) = (cells.name(), cells.reference());
        let penalty = |line| cells.late_ms(line) - cells.ms(line, reference);
        let (near, far) = (penalty(NEAR), penalty(LINE));
        checks.push(Check::claim(
            far > near,
            format!("{name}: a late loss costs {far:.0} ms more than one at position {reference}, at 10 ms it costs {near:.0} ms."),
        ));
        let (near, far) = (cells.increase(NEAR), cells.increase(LINE));
        checks.push(Check::claim(
            far < near,
            format!("{name}: in percent it is {far:.0} %, against {near:.0} % at 10 ms."),
        ));
    }
    checks
}

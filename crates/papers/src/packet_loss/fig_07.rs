//! packet-loss/fig-07: Linux, Author, 60 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records};

use super::curves::{of_both, of_linux};
use super::line::NetworkLine;
use super::service::AUTHOR;
use super::stack::LINUX;
use super::{BUDGET, DIFFERS, PAPER, instrument, one_line, sweep};

const NEAR: NetworkLine = NetworkLine { kbit: 300, ms: 10 };
const LINE: NetworkLine = NetworkLine { kbit: 300, ms: 60 };

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-07",
    title: "Linux, Author, 60 ms: response time by position of the loss",
    claim: "At a longer delay the penalty of a late loss is larger in milliseconds and smaller in percent.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| one_line::plot(&of_linux(records, &AUTHOR), LINE, None),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let [then, _] = of_both(records, &AUTHOR);
    let mut checks = instrument::all(records);
    for cells in [then, LINUX.cells(records, &AUTHOR)] {
        checks.extend(one_line::at_a_longer_delay(&cells, [NEAR, LINE]));
    }
    checks
}

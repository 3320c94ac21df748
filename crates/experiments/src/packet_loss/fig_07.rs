//! packet-loss/fig-07: Linux, Author, 60 ms, by position of the loss.

use super::curves::{by_position, of_both, parts};
use super::line::Line;
use super::service::{AUTHOR, SEGMENT};
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
    vec![
        Plot::Chart(by_position(records, &AUTHOR, LINE, None)),
        Plot::Bars(parts(records, &AUTHOR, LINE)),
    ]
}

fn checks(records: &Records) -> Vec<Check> {
    let [then, _] = of_both(records, &AUTHOR);
    let mut checks = instrument::checks(records);
    let reference = AUTHOR.reference(SEGMENT);
    let penalty = |line| then.late_ms(line) - then.ms(line, reference);
    let (near, far) = (penalty(NEAR), penalty(LINE));
    checks.push(Check::claim(
        far > near,
        format!("With linux-2005 a late loss costs {far:.0} ms more than one at position {reference}, at 10 ms it costs {near:.0} ms."),
    ));
    let (near, far) = (then.increase(NEAR), then.increase(LINE));
    checks.push(Check::claim(
        far < near,
        format!("In percent it is {far:.0} %, against {near:.0} % at 10 ms."),
    ));
    checks
}

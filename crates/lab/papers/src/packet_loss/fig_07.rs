//! packet-loss/fig-07: Linux, Author, 60 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records};

use super::curves::{of_both, of_linux};
use super::line::{NetworkLine, PUBLISHED};
use super::service::AUTHOR;
use super::stack::LINUX;
use super::{BUDGET, DIFFERS, PAPER, instrument, one_line, sweep};

const NEAR: NetworkLine = PUBLISHED[0];
const LINE: NetworkLine = PUBLISHED[1];

/// The paper's time without loss.
const PAPER_MS: f64 = 933.0;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-07",
    title: "Linux, Author, 60 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 933 ms. At a longer delay the penalty of a late loss is larger in milliseconds and smaller in percent.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| one_line::plot(&of_linux(records, &AUTHOR), LINE, Some(PAPER_MS)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let [then, _] = of_both(records, &AUTHOR);
    let mut checks = instrument::all(records);
    let model = LINUX.cells(records, &AUTHOR);
    let none = model.ms(LINE, 0);
    checks.push(Check::claim(
        one_line::is_published(none, PAPER_MS),
        format!(
            "{}: without loss {none:.0} ms (paper: {PAPER_MS} ms).",
            model.name()
        ),
    ).because("the first acknowledgement of the reply fits if it comes 40 ms later, as from a client that writes before it is connected (linux-2.6.15-early-write in docs/papers/predictions.md); the paper does not describe its client."));
    for cells in [then, model] {
        checks.extend(one_line::at_a_longer_delay(&cells, [NEAR, LINE]));
    }
    checks
}

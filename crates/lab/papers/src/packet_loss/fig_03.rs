//! packet-loss/fig-03: FreeBSD, Author, 60 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::line::NetworkLine;
use super::service::AUTHOR;
use super::stack::FREEBSD;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, instrument, one_line, simulated};

const NEAR: NetworkLine = NetworkLine { kbit: 300, ms: 10 };
const LINE: NetworkLine = NetworkLine { kbit: 300, ms: 60 };

/// The paper's time without loss.
const PAPER_MS: f64 = 886.0;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-03",
    title: "FreeBSD, Author, 60 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 886 ms. At a longer delay the penalty of a late loss is larger in milliseconds and smaller in percent.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| one_line::plot(&of_freebsd(records, &AUTHOR), LINE, Some(PAPER_MS)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let cells = FREEBSD.cells(records, &AUTHOR);
    let none = cells.ms(LINE, 0);
    let mut checks = instrument::simulation(records);
    checks.push(Check::claim(
        one_line::is_published(none, PAPER_MS),
        format!("Without loss {none:.0} ms (paper: {PAPER_MS} ms)."),
    ));
    checks.extend(one_line::at_a_longer_delay(&cells, [NEAR, LINE]));
    checks
}

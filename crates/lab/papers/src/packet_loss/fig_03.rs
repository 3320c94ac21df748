//! packet-loss/fig-03: FreeBSD, Author, 60 ms, by position of the loss.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::line::{NetworkLine, PUBLISHED};
use super::service::AUTHOR;
use super::stack::FREEBSD;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, instrument, one_line, simulated};

const NEAR: NetworkLine = PUBLISHED[0];
const LINE: NetworkLine = PUBLISHED[1];

/// The paper's time without loss, and the additional time of a loss at position 10 over one at 6, in ms.
const PAPER_MS: f64 = 886.0;
const PAPER_LATE_MS: f64 = 929.0;

/// Standard deviation of the difference of one transaction at position 10 and one at position 6, in ms: `posthaste
/// simulate` with 2,000 transactions of each. The paper's numbers are of few runs.
const SCATTER_MS: f64 = 38.0;

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
    let late = cells.ms(LINE, 10) - cells.ms(LINE, 6);
    checks.push(Check::claim(
        (late - PAPER_LATE_MS).abs() <= 2.0 * SCATTER_MS,
        format!(
            "A loss at position 10 takes {late:.0} ms more than one at position 6 (paper: {PAPER_LATE_MS} ms; the difference of two single transactions scatters by {SCATTER_MS} ms)."
        ),
    ));
    checks.extend(one_line::at_a_longer_delay(&cells, [NEAR, LINE]));
    checks
}

//! packet-loss/fig-03: FreeBSD, Author, 60 ms, by position of the loss.

use super::curves::{by_position, of_freebsd, parts};
use super::line::Line;
use super::service::AUTHOR;
use super::stack::FREEBSD;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, instrument, simulated};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

const NEAR: Line = Line { kbit: 300, ms: 10 };
const LINE: Line = Line { kbit: 300, ms: 60 };

/// The paper's time without loss.
const PAPER_MS: f64 = 886.0;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-03",
    title: "FreeBSD, Author, 60 ms: response time by position of the loss",
    claim: "Without loss a transaction takes 886 ms. At a longer delay the penalty of a late loss is larger in milliseconds and smaller in percent.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot,
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let chart = by_position(&of_freebsd(records, &AUTHOR), LINE, Some(PAPER_MS));
    let of_paper = FREEBSD.cells(records, &AUTHOR);
    vec![Plot::Chart(chart), Plot::Bars(parts(&of_paper, LINE))]
}

fn checks(records: &Records) -> Vec<Check> {
    let cells = FREEBSD.cells(records, &AUTHOR);
    let none = cells.ms(LINE, 0);
    let reference = cells.reference();
    let penalty = |line| cells.late_ms(line) - cells.ms(line, reference);
    let (near, far) = (penalty(NEAR), penalty(LINE));
    let (near_share, far_share) = (cells.increase(NEAR), cells.increase(LINE));
    let mut checks = instrument::simulation(records);
    checks.extend([
        Check::claim(
            (none / PAPER_MS - 1.0).abs() < 0.03,
            format!("Without loss {none:.0} ms (paper: {PAPER_MS} ms)."),
        ),
        Check::claim(
            far > near,
            format!("A late loss costs {far:.0} ms more than one at position {reference}, at 10 ms it costs {near:.0} ms."),
        ),
        Check::claim(
            far_share < near_share,
            format!("In percent it is {far_share:.0} %, against {near_share:.0} % at 10 ms."),
        ),
    ]);
    checks
}

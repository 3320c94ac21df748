//! packet-loss/fig-09: Linux, Author, the relative increase on all lines.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_linux;
use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, all_lines, instrument, sweep};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-09",
    title: "Linux, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6. The increase is considerably smaller than with FreeBSD.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_lines::plot(&of_linux(records, &AUTHOR)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::all(records);
    checks.extend(all_lines::checks(&of_linux(records, &AUTHOR)));
    checks.push(all_lines::is_less_with_linux(records));
    checks
}

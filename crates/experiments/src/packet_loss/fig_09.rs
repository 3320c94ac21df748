//! packet-loss/fig-09: Linux, Author, the relative increase on all lines.

use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, all_lines, sweep};
use crate::figure::Figure;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-09",
    title: "Linux, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6; considerably less so than with FreeBSD.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_lines::plot(records, &AUTHOR),
    checks: |records| all_lines::checks(records, &AUTHOR),
    differs: DIFFERS,
};

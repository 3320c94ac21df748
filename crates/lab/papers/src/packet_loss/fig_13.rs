//! packet-loss/fig-13: Linux, Sellerprofile, the relative increase on all lines.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_linux;
use super::service::{AUTHOR, SELLERPROFILE};
use super::{BUDGET, DIFFERS, PAPER, all_lines, instrument, sweep};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-13",
    title: "Linux, Sellerprofile: relative increase, 56 combinations",
    claim: "In a shorter reply the late region covers a larger part, and the increase is larger.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_lines::plot(&of_linux(records, &SELLERPROFILE)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let [shorter, longer] = [&SELLERPROFILE, &AUTHOR].map(|service| of_linux(records, service));
    let mut checks = instrument::all(records);
    checks.extend(all_lines::checks(&shorter));
    let pairs = shorter.iter().zip(&longer);
    checks.extend(pairs.map(|(shorter, longer)| all_lines::is_larger(shorter, longer)));
    checks
}

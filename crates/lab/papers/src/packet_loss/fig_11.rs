//! packet-loss/fig-11: FreeBSD, Sellerprofile, the relative increase on all lines.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::service::{AUTHOR, SELLERPROFILE};
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, all_lines, instrument, simulated};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-11",
    title: "FreeBSD, Sellerprofile: relative increase, 56 combinations",
    claim: "In a shorter reply the late region covers a larger part, and the increase is larger.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| all_lines::plot(&of_freebsd(records, &SELLERPROFILE)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let [shorter, longer] = [&SELLERPROFILE, &AUTHOR].map(|service| of_freebsd(records, service));
    let mut checks = instrument::simulation(records);
    checks.extend(all_lines::checks(&shorter));
    let pairs = shorter.iter().zip(&longer);
    checks.extend(pairs.map(|(shorter, longer)| all_lines::is_larger(shorter, longer)));
    checks
}

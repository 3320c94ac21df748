//! packet-loss/fig-05: FreeBSD, Author, the relative increase on all lines.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::service::AUTHOR;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, all_lines, instrument, simulated};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-05",
    title: "FreeBSD, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6. The increase is considerably larger than with Linux.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| all_lines::plot(&of_freebsd(records, &AUTHOR)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::simulation(records);
    checks.extend(all_lines::checks(&of_freebsd(records, &AUTHOR)));
    checks.push(all_lines::is_less_with_linux(records));
    checks
}

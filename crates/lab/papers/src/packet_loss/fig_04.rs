//! packet-loss/fig-04: FreeBSD, Author, all delays at 1000 kbit/s.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::service::AUTHOR;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, all_delays, instrument, simulated};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-04",
    title: "FreeBSD, Author, 1000 kbit/s: all delays",
    claim: "The last four data packets are the sensitive ones at every delay.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| all_delays::plot(&of_freebsd(records, &AUTHOR)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::simulation(records);
    checks.extend(all_delays::checks(&of_freebsd(records, &AUTHOR)));
    checks
}

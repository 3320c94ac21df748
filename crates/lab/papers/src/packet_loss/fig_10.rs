//! packet-loss/fig-10: FreeBSD, Sellerprofile, all delays at 1000 kbit/s.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_freebsd;
use super::service::SELLERPROFILE;
use super::{OF_FREEBSD_DIFFERS, PAPER, SIMULATED, all_delays, instrument, simulated};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-10",
    title: "FreeBSD, Sellerprofile, 1000 kbit/s: all delays",
    claim: "With a shorter reply, too, the last data packets are the sensitive ones.",
    paper: PAPER,
    budget: SIMULATED,
    study: &simulated::STUDY,
    plot: |records| all_delays::plot(&of_freebsd(records, &SELLERPROFILE)),
    checks,
    differs: OF_FREEBSD_DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::simulation(records);
    checks.extend(all_delays::checks(&of_freebsd(records, &SELLERPROFILE)));
    checks
}

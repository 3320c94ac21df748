//! packet-loss/fig-12: Linux, Sellerprofile, all delays at 1000 kbit/s.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_linux;
use super::service::SELLERPROFILE;
use super::{BUDGET, DIFFERS, PAPER, all_delays, instrument, sweep};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-12",
    title: "Linux, Sellerprofile, 1000 kbit/s: all delays",
    claim: "With a shorter reply, too, the last data packets are the sensitive ones.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_delays::plot(&of_linux(records, &SELLERPROFILE)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::all(records);
    checks.extend(all_delays::checks(&of_linux(records, &SELLERPROFILE)));
    checks
}

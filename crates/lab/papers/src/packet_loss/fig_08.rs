//! packet-loss/fig-08: Linux, Author, all delays at 1000 kbit/s.

use posthaste_study::{Check, Figure, Records};

use super::curves::of_linux;
use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, all_delays, instrument, sweep};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-08",
    title: "Linux, Author, 1000 kbit/s: all delays",
    claim: "The late positions are the sensitive ones at every delay.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_delays::plot(&of_linux(records, &AUTHOR)),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::all(records);
    checks.extend(all_delays::checks(&of_linux(records, &AUTHOR)));
    checks
}

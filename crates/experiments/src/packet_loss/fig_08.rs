//! packet-loss/fig-08: Linux, Author, all delays at 1000 kbit/s.

use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, all_delays, sweep};
use crate::figure::Figure;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-08",
    title: "Linux, Author, 1000 kbit/s: all delays",
    claim: "The late positions are the sensitive ones at every delay.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_delays::plot(records, &AUTHOR),
    checks: |records| all_delays::checks(records, &AUTHOR),
    differs: DIFFERS,
};

//! packet-loss/fig-12: Linux, Sellerprofile, all delays at 1000 kbit/s.

use super::service::SELLERPROFILE;
use super::{BUDGET, DIFFERS, PAPER, all_delays, sweep};
use crate::figure::Figure;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-12",
    title: "Linux, Sellerprofile, 1000 kbit/s: all delays",
    claim: "The same for a shorter reply: the last data packets are the sensitive ones.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_delays::plot(records, &SELLERPROFILE),
    checks: |records| all_delays::checks(records, &SELLERPROFILE),
    differs: DIFFERS,
};

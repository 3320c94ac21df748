//! packet-loss/fig-13: Linux, Sellerprofile, the relative increase on all lines.

use super::curves::{of_both, over_lines};
use super::service::SELLERPROFILE;
use super::{BUDGET, DIFFERS, PAPER, instrument, sweep};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-13",
    title: "Linux, Sellerprofile: relative increase, 56 combinations",
    claim: "A shorter reply: the late region covers more of it, and the increase is larger.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| {
        of_both(records, &SELLERPROFILE)
            .map(|cells| Plot::Chart(over_lines(&cells)))
            .into()
    },
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    for cells in of_both(records, &SELLERPROFILE) {
        let increases = cells.increases();
        let longer = increases.iter().filter(|increase| **increase > 0.0).count();
        let at = |share: f64| {
            let place = (share * increases.len().saturating_sub(1) as f64).round();
            increases.get(place as usize).copied().unwrap_or(f64::NAN)
        };
        checks.push(Check::claim(
            longer == 56,
            format!("{}: a late loss takes longer on {longer} of 56 lines, by {:.0} % at the median ({:.0} to {:.0} %).", cells.kernel.name, at(0.5), at(0.0), at(1.0)),
        ));
    }
    checks
}

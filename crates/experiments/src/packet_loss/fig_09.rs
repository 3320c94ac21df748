//! packet-loss/fig-09: Linux, Author, the relative increase on all lines.

use super::curves::{of_both, over_lines};
use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, instrument, sweep};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-09",
    title: "Linux, Author: relative increase, 56 combinations",
    claim: "On every line a loss of the last data packets takes longer than one at position 6; considerably less so than with FreeBSD.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| {
        of_both(records, &AUTHOR)
            .map(|cells| Plot::Chart(over_lines(&cells)))
            .into()
    },
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    for cells in of_both(records, &AUTHOR) {
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

//! packet-loss/fig-13: Linux, Sellerprofile, the relative increase on all lines.

use super::cells::{Cells, quantile};
use super::curves::of_both;
use super::line::Line;
use super::service::{AUTHOR, SEGMENT, SELLERPROFILE};
use super::{BUDGET, DIFFERS, PAPER, all_lines, sweep};
use crate::check::Check;
use crate::figure::Figure;
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-13",
    title: "Linux, Sellerprofile: relative increase, 56 combinations",
    claim: "A shorter reply: the late region covers more of it, and the increase is larger.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| all_lines::plot(records, &SELLERPROFILE),
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = all_lines::checks(records, &SELLERPROFILE);
    let of = |service| of_both(records, service);
    let pairs = of(&SELLERPROFILE).into_iter().zip(of(&AUTHOR));
    checks.extend(pairs.map(|(shorter, longer)| is_larger(&shorter, &longer)));
    checks
}

/// The increase of the shorter reply against the longer one's, and what the reference has to do with it:
/// the paper does not state it for this service, and a loss there costs something, too.
fn is_larger(shorter: &Cells<'_>, longer: &Cells<'_>) -> Check {
    let both = [shorter, longer];
    let median = |value: &dyn Fn(&Cells<'_>, Line) -> f64| {
        both.map(|cells| quantile(&cells.on_all_lines(value), 0.5))
    };
    let [here, there] = median(&|cells, line| cells.increase(line));
    let [over_none, over_none_there] = median(&|cells, line| cells.increase_over(line, 0));
    let at = |cells: &Cells<'_>, line| cells.ms(line, cells.service.reference(SEGMENT));
    let [cost, cost_there] = median(&|cells, line| at(cells, line) - cells.ms(line, 0));
    let [position, position_there] = both.map(|cells| cells.service.reference(SEGMENT));
    Check::claim(
        here > there,
        format!(
            "{}: the increase is {here:.0} % at the median, Author's {there:.0} %. The reference matters: a loss at position {position} costs {cost:.0} ms itself, at Author's position {position_there} {cost_there:.0} ms. Over no loss at all a late one takes {over_none:.0} % longer, with Author {over_none_there:.0} %.",
            shorter.name()
        ),
    )
}

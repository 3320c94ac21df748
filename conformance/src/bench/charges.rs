//! Charges that are lost or taken twice, counted over many kills of gateways, broker and PostgreSQL.

use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;
use crate::peers::charges::{Comparison, killed};

/// Lost and doubled charges, in cents.
pub(crate) fn charges(bench: &Bench) -> Outcome<Vec<Figure>> {
    let kills = bench.or_quick(200, 20);
    let Comparison {
        paid,
        lost,
        may_be_lost,
        twice,
        ..
    } = killed(&bench.site, kills)?;
    let cents = |micros: u64| micros.div_ceil(10_000);
    let lost_part = Measure::part(cents(lost), cents(paid), "cents paid");
    let bound = format!("at most {} cents", cents(may_be_lost));
    let twice_part = Measure::part(cents(twice), cents(paid), "cents paid");
    Ok(vec![
        Figure::new(format!("{kills} kills: charges that were lost"), lost_part)
            .target(bound, lost <= may_be_lost),
        Figure::new(
            format!("{kills} kills: charges that were taken twice"),
            twice_part,
        )
        .target("none", twice == 0),
    ])
}

//! packet-loss/fig-08: Linux, Author, all delays at 1000 kbit/s.

use super::curves::{SHOWN_KBIT, of_both, over_delays};
use super::line::{DELAYS, Line};
use super::service::AUTHOR;
use super::{BUDGET, DIFFERS, PAPER, instrument, sweep};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-08",
    title: "Linux, Author, 1000 kbit/s: all delays",
    claim: "The late positions are the sensitive ones at every delay.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| {
        of_both(records, &AUTHOR)
            .map(|cells| Plot::Chart(over_delays(&cells)))
            .into()
    },
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    for cells in of_both(records, &AUTHOR) {
        let sensitive = DELAYS.map(|ms| {
            (
                ms,
                cells.sensitive(Line {
                    kbit: SHOWN_KBIT,
                    ms,
                }),
            )
        });
        let like = sensitive
            .iter()
            .filter(|(_, found)| found.iter().copied().eq(AUTHOR.late()))
            .count();
        let told: Vec<String> = sensitive
            .iter()
            .map(|(ms, found)| format!("{found:?} at {ms} ms"))
            .collect();
        checks.push(Check::claim(
            like == DELAYS.len(),
            format!(
                "{}: a loss costs more than 200 ms and a round trip at positions 9 to 11 alone at {like} of {} delays: {}.",
                cells.kernel.name,
                DELAYS.len(),
                told.join(", ")
            ),
        ));
    }
    checks
}

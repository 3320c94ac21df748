//! packet-loss/fig-12: Linux, Sellerprofile, all delays at 1000 kbit/s.

use super::curves::{SHOWN_KBIT, of_both, over_delays};
use super::line::{DELAYS, Line};
use super::service::SELLERPROFILE;
use super::{BUDGET, DIFFERS, PAPER, instrument, sweep};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/fig-12",
    title: "Linux, Sellerprofile, 1000 kbit/s: all delays",
    claim: "The same for a shorter reply: the last data packets are the sensitive ones.",
    paper: PAPER,
    budget: BUDGET,
    study: &sweep::STUDY,
    plot: |records| {
        of_both(records, &SELLERPROFILE)
            .map(|cells| Plot::Chart(over_delays(&cells)))
            .into()
    },
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    for cells in of_both(records, &SELLERPROFILE) {
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
            .filter(|(_, found)| found.iter().copied().eq(SELLERPROFILE.late()))
            .count();
        let told: Vec<String> = sensitive
            .iter()
            .map(|(ms, found)| format!("{found:?} at {ms} ms"))
            .collect();
        checks.push(Check::claim(
            like == DELAYS.len(),
            format!(
                "{}: a loss costs more than 200 ms and a round trip at positions 6 to 8 alone at {like} of {} delays: {}.",
                cells.kernel.name,
                DELAYS.len(),
                told.join(", ")
            ),
        ));
    }
    checks
}

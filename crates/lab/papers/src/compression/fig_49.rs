//! wsqos/fig-49: GPRS, good: service time against reply size.

use posthaste_study::{Check, Figure, Records};

use super::claims::{LINE, wins};
use super::handheld::{self, BUDGET, GPRS};
use super::service_time::NetworkCells;
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-49",
    title: "GPRS, good: service time against reply size",
    claim: "Over GPRS with good reception compression wins as replies grow.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| network(records).plot("GPRS, good reception: service time of each reply"),
    checks,
    differs: LINE,
};

fn network(records: &Records) -> NetworkCells<'_> {
    NetworkCells {
        records,
        name: GPRS,
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let network = network(records);
    let mut checks = network.instrument();
    checks.extend(wins(network));
    checks
}

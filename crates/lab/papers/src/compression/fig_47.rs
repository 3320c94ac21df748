//! wsqos/fig-47: 802.11b: service time against reply size.

use posthaste_study::{Check, Figure, Records};

use super::claims::{WITHOUT_THE_REST, no_real_difference};
use super::handheld::{self, BUDGET, WLAN};
use super::service_time::NetworkCells;
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-47",
    title: "802.11b: service time against reply size",
    claim: "Over 802.11b compression makes no real difference, at most 4 % at the largest reply. Service times are about 2 s below those over Bluetooth, whatever the size.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| network(records).plot_with_processing("802.11b: service time of each reply"),
    checks,
    differs: WITHOUT_THE_REST,
};

fn network(records: &Records) -> NetworkCells<'_> {
    NetworkCells {
        records,
        name: WLAN,
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let network = network(records);
    let mut checks = network.instrument();
    checks.extend(no_real_difference(network));
    checks.extend(network.with_processing());
    checks
}

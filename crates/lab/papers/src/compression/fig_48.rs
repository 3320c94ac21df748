//! wsqos/fig-48: Bluetooth: service time against reply size.

use posthaste_study::{Check, Figure, Records};

use super::claims::{WITHOUT_THE_REST, no_real_difference};
use super::handheld::{self, BLUETOOTH, BUDGET};
use super::service_time::NetworkCells;
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-48",
    title: "Bluetooth: service time against reply size",
    claim: "Over Bluetooth compression makes no real difference either. Service times are about 2 s above those over 802.11b, whatever the size.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| network(records).plot_with_processing("Bluetooth: service time of each reply"),
    checks,
    differs: WITHOUT_THE_REST,
};

fn network(records: &Records) -> NetworkCells<'_> {
    NetworkCells {
        records,
        name: BLUETOOTH,
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let network = network(records);
    let mut checks = network.instrument();
    checks.extend(no_real_difference(network));
    checks.extend(network.with_processing());
    checks
}

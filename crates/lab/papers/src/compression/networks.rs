//! wsqos/fig-47 to fig-50: service time against reply size, on each network.

use posthaste_bookshop::Size;
use posthaste_study::{Check, Figure, Records};

use super::claims::{LINE, WITHOUT_THE_REST, no_real_difference, wins};
use super::handheld::{self, BLUETOOTH, BUDGET, COMPRESSED, GPRS, GPRS_POOR, PLAIN, WLAN};
use super::paper;
use super::service_time::{ClientSpeed, NetworkCells};
use crate::planned::THESIS;

pub(crate) static FIG_47: Figure = Figure {
    id: "wsqos/fig-47",
    title: "802.11b: service time against reply size",
    claim: "Over 802.11b compression makes no real difference, at most 4 % at the largest reply. Service times are about 2 s below those over Bluetooth, whatever the size.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| {
        network(records, WLAN).plot_with_processing("802.11b: service time of each reply")
    },
    checks: |records| fast(network(records, WLAN)),
    differs: WITHOUT_THE_REST,
};

pub(crate) static FIG_48: Figure = Figure {
    id: "wsqos/fig-48",
    title: "Bluetooth: service time against reply size",
    claim: "Over Bluetooth compression makes no real difference either. Service times are about 2 s above those over 802.11b, whatever the size.",
    plot: |records| {
        network(records, BLUETOOTH).plot_with_processing("Bluetooth: service time of each reply")
    },
    checks: |records| fast(network(records, BLUETOOTH)),
    ..FIG_47
};

pub(crate) static FIG_49: Figure = Figure {
    id: "wsqos/fig-49",
    title: "GPRS, good: service time against reply size",
    claim: "Over GPRS with good reception compression wins as replies grow.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| network(records, GPRS).plot("GPRS, good reception: service time of each reply"),
    checks: |records| slow(network(records, GPRS)),
    differs: LINE,
};

pub(crate) static FIG_50: Figure = Figure {
    id: "wsqos/fig-50",
    title: "GPRS, poor: service time against reply size",
    claim: "Over GPRS with poor reception compression gains more: the largest reply takes half the time.",
    plot: |records| {
        network(records, GPRS_POOR).plot("GPRS, poor reception: service time of each reply")
    },
    checks: at_poor_gprs,
    ..FIG_49
};

/// The answer of this run: gain of the largest reply on the slowest and on the fastest network.
pub(crate) fn answer(records: &Records) -> String {
    let largest = Size::Heavy5;
    let seconds = |name, form| {
        let network = NetworkCells { records, name };
        network.ms(largest, form, ClientSpeed::Handheld) / 1e3
    };
    let [slow, fast] =
        [GPRS_POOR, WLAN].map(|name| [PLAIN, COMPRESSED].map(|form| seconds(name, form)));
    format!(
        "Over GPRS with poor reception the largest reply takes {:.0} s compressed and {:.0} s plain (paper: half), over 802.11b {:.1} and {:.1} s.",
        slow[1], slow[0], fast[1], fast[0]
    )
}

const fn network<'a>(records: &'a Records, name: &'static str) -> NetworkCells<'a> {
    NetworkCells { records, name }
}

/// Checks of a network on which compression makes no real difference.
fn fast(network: NetworkCells<'_>) -> Vec<Check> {
    let mut checks = network.instrument();
    checks.extend(no_real_difference(network));
    checks.extend(network.with_processing());
    checks
}

/// Checks of a network on which compression wins.
fn slow(network: NetworkCells<'_>) -> Vec<Check> {
    let mut checks = network.instrument();
    checks.extend(wins(network));
    checks
}

fn at_poor_gprs(records: &Records) -> Vec<Check> {
    let network = network(records, GPRS_POOR);
    let mut checks = slow(network);
    checks.push(half(network));
    checks
}

fn half(network: NetworkCells<'_>) -> Check {
    let largest = Size::Heavy5;
    let share = 1.0 + network.over_plain(largest, ClientSpeed::Handheld);
    let [plain, compressed] =
        [PLAIN, COMPRESSED].map(|form| network.ms(largest, form, ClientSpeed::Handheld) / 1e3);
    Check::claim(
        (share - paper::LARGEST_AT_POOR_GPRS).abs() <= 0.1,
        format!(
            "The largest reply takes half the time: here {share:.2} of it, {compressed:.1} s instead of {plain:.1} s (held to be half within 0.1)."
        ),
    ).because("the paper's times contain its handheld's processing of SOAP, the same for both, which this comparison leaves out.")
}

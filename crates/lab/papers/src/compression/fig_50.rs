//! wsqos/fig-50: GPRS, poor: service time against reply size.

use posthaste_bookshop::Size;
use posthaste_study::{Check, Figure, Records};

use super::claims::{LINE, wins};
use super::handheld::{self, BUDGET, COMPRESSED, GPRS_POOR, PLAIN, WLAN};
use super::paper;
use super::service_time::{ClientSpeed, NetworkCells};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-50",
    title: "GPRS, poor: service time against reply size",
    claim: "Over GPRS with poor reception compression gains more: the largest reply takes half the time.",
    paper: THESIS,
    budget: BUDGET,
    study: &handheld::STUDY,
    plot: |records| network(records).plot("GPRS, poor reception: service time of each reply"),
    checks,
    differs: LINE,
};

fn network(records: &Records) -> NetworkCells<'_> {
    NetworkCells {
        records,
        name: GPRS_POOR,
    }
}

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

fn checks(records: &Records) -> Vec<Check> {
    let network = network(records);
    let mut checks = network.instrument();
    checks.extend(wins(network));
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

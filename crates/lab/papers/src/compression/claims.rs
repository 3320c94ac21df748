//! Claims of the paper about more than one network, and the reasons of our differences.

use posthaste_bookshop::Size;
use posthaste_study::{Check, NOISE, least, most};

use super::handheld::{BLUETOOTH, COMPRESSED, PLAIN, WLAN};
use super::paper;
use super::service_time::{ClientSpeed, NetworkCells};

/// Reason of differences on both fast networks.
pub(super) const WITHOUT_THE_REST: &str = include_str!("fast_networks_differs.md").trim_ascii();

/// Reason of differences on both slow networks.
pub(super) const LINE: &str = include_str!("slow_networks_differs.md").trim_ascii();

/// Checks that compressed and plain replies take equally long, and that 802.11b is two seconds below Bluetooth.
pub(super) fn no_real_difference(network: NetworkCells<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    for (client, name) in [
        (ClientSpeed::Handheld, "the handheld"),
        (ClientSpeed::Fast, "a client as fast as this machine"),
    ] {
        let apart = most(Size::ALL.map(|size| network.over_plain(size, client).abs()));
        let [plain, compressed] =
            [PLAIN, COMPRESSED].map(|form| network.ms(Size::Heavy5, form, client));
        checks.push(Check::claim(
            apart <= paper::APART,
            format!(
                "No real difference for {name}: compressed and plain are at most {:.0} % apart (paper: 4); the largest reply takes {compressed:.0} ms compressed and {plain:.0} ms plain.",
                100.0 * apart
            ),
        ).because("the paper's times contain its handheld's processing of SOAP, which this comparison leaves out."));
    }
    let below = |size| {
        let ms = |name| {
            let network = NetworkCells { name, ..network };
            network.ms(size, PLAIN, ClientSpeed::Handheld)
        };
        (ms(BLUETOOTH) - ms(WLAN)) / 1e3
    };
    let gaps = Size::ALL.map(below);
    let (smallest, largest) = (least(gaps), most(gaps));
    let about = |gap: &f64| (gap / paper::WLAN_BELOW_BLUETOOTH - 1.0).abs() <= 0.25;
    checks.push(Check::claim(
        gaps.iter().all(about),
        format!(
            "802.11b is about 2 s below Bluetooth at every size: here {smallest:.3} s for the smallest gap, {largest:.3} s for the largest."
        ),
    ).because("no processing explains a gap between networks, and their rates and delays explain 0.1 s for the smallest reply and 0.6 s for the largest."));
    checks
}

/// Checks that compression wins, and that its gain grows with the reply.
pub(super) fn wins(network: NetworkCells<'_>) -> [Check; 2] {
    let gains = Size::ALL.map(|size| -network.over_plain(size, ClientSpeed::Handheld));
    let parts: Vec<String> = Size::ALL
        .iter()
        .zip(gains)
        .map(|(size, gain)| format!("{} {:+.0} %", size.name(), -100.0 * gain))
        .collect();
    let grows = gains.windows(2).all(|pair| pair[0] < pair[1]);
    let wins = gains[1..].iter().all(|gain| *gain > 0.0);
    [
        Check::claim(
            wins,
            format!(
                "Compressed, every reply but the greeting is there sooner: {}.",
                parts.join(", ")
            ),
        ),
        Check::claim(
            grows,
            format!(
                "The larger the reply, the more is gained, from {:.0} % of {} to {:.0} % of {}.",
                100.0 * gains[1],
                Size::ALL[1].name(),
                100.0 * gains[5],
                Size::ALL[5].name()
            ),
        )
        .because(NOISE),
    ]
}

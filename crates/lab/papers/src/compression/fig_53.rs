//! wsqos/fig-53: throughput, compressed for all, for none, and by load.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records, least, most};
use posthaste_units::Span;

use super::paper;
use super::sclient::{self, Mix, places};
use super::sclient_plots::{DIFFERS, of_paper, over_rate, overloaded};
use crate::planned::THESIS;
use crate::testbed::curves::nearest;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-53",
    title: "all, none and dynamic: throughput",
    claim: "If half of the clients refuse compression and half leave the choice to the server, throughput is almost that without compression. Of the replies that may be compressed, all are compressed up to 60/s, 20 % at 120/s and none above 140/s.",
    paper: THESIS,
    budget: Span::from_secs(50),
    study: &sclient::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

/// Maximum rise of a share between two rates that still counts as falling.
const WOBBLE: f64 = 0.05;

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    let title = "Throughput, compressed for all, none, and as can be afforded";
    let throughput = over_rate(records, title, y, &Mix::EVERY, "throughput_per_s");
    let y = Axis::linear("compressed of those that may be", Unit::Share);
    let title = "Dynamic: which share of the replies that may be is compressed";
    let mut share = over_rate(records, title, y, &[Mix::Dynamic], "packed");
    share.series.push(of_paper(Mix::Dynamic, &paper::DYNAMIC));
    vec![Plot::Chart(throughput), Plot::Chart(share)]
}

/// The answer of this run: throughput of the load-based decision under overload, and its compression at low load.
pub(crate) fn answer(records: &Records) -> String {
    let [none, all, dynamic] =
        [Mix::None, Mix::All, Mix::Dynamic].map(|mix| overloaded(records, mix, "throughput_per_s"));
    let first = places(records, Mix::Dynamic, "packed");
    let first = first.first().map_or(f64::NAN, |point| point.1);
    let verdict = if dynamic >= 0.97 * none && first >= 0.98 {
        "Yes"
    } else {
        "Not fully"
    };
    format!(
        "{verdict}: under overload the gateway keeps {:.0} % of the throughput without compression (compressing everything keeps {:.0} %), and at low load it compresses {:.0} % of the replies that may be.",
        100.0 * dynamic / none,
        100.0 * all / none,
        100.0 * first
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let [none, dynamic] =
        [Mix::None, Mix::Dynamic].map(|mix| overloaded(records, mix, "throughput_per_s"));
    checks.push(Check::claim(
        dynamic >= 0.97 * none,
        format!("Dynamic is almost as good as none: {dynamic:.0} against {none:.0}/s under overload, {:.1} % (wanted: 97 %).", 100.0 * dynamic / none),
    ).because(NOISE));
    let share = places(records, Mix::Dynamic, "packed");
    let [all, few, none] = paper::DYNAMIC.map(|(rate, share)| (rate / paper::NONE_CAPACITY, share));
    let low = share.iter().filter(|point| point.0 <= all.0);
    let fewest = least(low.map(|point| point.1));
    checks.push(Check::claim(
        fewest >= 0.98,
        format!("Up to 60/s, {:.2} of the capacity, every reply that may be is compressed: here {:.1} % of them.", all.0, 100.0 * fewest),
    ).because("possibly noise: the gateway looks at its load five times a second, and what other programs take of the processor counts as load."));
    let there = nearest(&share, few.0);
    checks.push(Check::claim(
        there > 0.0 && there < 0.5,
        format!("At 120/s, {:.2} of the capacity, some still are: here {:.0} % at the nearest rate (paper: {:.0} %).", few.0, 100.0 * there, 100.0 * few.1),
    ).because("at this rate our gateway is busier than its threshold of 80 %, above which it compresses on request only."));
    let high = share.iter().filter(|point| point.0 > none.0);
    let rest = most(high.map(|point| point.1));
    checks.push(Check::claim(
        (0.0..=0.02).contains(&rest),
        format!(
            "Above 140/s, {:.2} of the capacity, none is: here {:.1} % at most.",
            none.0,
            100.0 * rest
        ),
    ).because("possibly noise: where other programs hold the generator back, the gateway has time to compress."));
    let rises = share.windows(2).map(|two| two[1].1 - two[0].1);
    let worst = most(rises);
    checks.push(Check::claim(
        worst <= WOBBLE,
        format!("The share falls as the rate grows: from one rate to the next it rises by {:.1} points at most.", 100.0 * worst.max(0.0)),
    ).because(NOISE));
    checks
}

//! wsqos/fig-51: throughput, all compressed against none.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::paper;
use super::sclient::{self, Mix};
use super::sclient_plots::{DIFFERS, no_asker_denied, of_paper, over_rate};
use crate::planned::THESIS;
use crate::testbed::curves::capacity;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-51",
    title: "all compressed against none: throughput",
    claim: "Without compression the server answers about 135 requests a second, with compression for all about 90.",
    paper: THESIS,
    budget: Span::from_secs(50),
    study: &sclient::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

/// The two mixes of this figure. In the paper, throughput follows the rate up to the capacity.
pub(super) const PAIR: [Mix; 2] = [Mix::All, Mix::None];

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    let title = "Throughput, all compressed against none";
    let mut chart = over_rate(records, title, y, &PAIR, "throughput_per_s");
    let scale = capacity(records, Mix::None.name()) / paper::NONE_CAPACITY;
    for (mix, rate) in [
        (Mix::All, paper::ALL_CAPACITY),
        (Mix::None, paper::NONE_CAPACITY),
    ] {
        chart
            .series
            .push(of_paper(mix, &[(0.0, 0.0), (rate, rate * scale)]));
    }
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let [all, none] = PAIR.map(|mix| capacity(records, mix.name()));
    let theirs = paper::ALL_CAPACITY / paper::NONE_CAPACITY;
    checks.push(Check::claim(
        all < 0.9 * none,
        format!("Compressing for all costs capacity: {all:.0} of {none:.0}/s are left, {:.0} % (paper: 90 of 135/s, {:.0} %).", 100.0 * all / none, 100.0 * theirs),
    ).because(NOISE));
    checks.push(no_asker_denied(records));
    checks
}

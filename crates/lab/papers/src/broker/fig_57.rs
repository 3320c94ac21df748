//! wsqos/fig-57: offers in memory: throughput.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{DIFFERS, MEMORY, over_rate, stays};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::curves::capacity;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-57",
    title: "offers in memory: throughput",
    claim: "If the broker compares every offer in memory for each request, it answers 25 requests a second at most.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &brokers::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    let chart = over_rate(
        records,
        "Throughput, offers compared in memory",
        y,
        &MEMORY,
        "throughput_per_s",
    );
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(stays(records, &MEMORY));
    let [walk, ours] = [MEMORY.who, brokers::OURS].map(|who| capacity(records, who));
    checks.push(Check::claim(
        (0.8..=1.25).contains(&(ours / walk)),
        format!("With 27 offers an index gains nothing over comparing all of them: ours answers {ours:.0}/s, this one {walk:.0}, {:.2} times as many.", ours / walk),
    ).because("with 27 offers the lookup is a small part of a request; what differs is the rest."));
    checks
}

//! wsqos/fig-56: offers in memory: response time.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{DIFFERS, MEMORY, over_rate, rises};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-56",
    title: "offers in memory: response time",
    claim: "If the broker compares every offer in memory for each request, the response time rises from 30 requests a second on.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &brokers::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    let chart = over_rate(
        records,
        "Mean response time, offers compared in memory",
        y,
        &MEMORY,
        "response_ms",
    );
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(rises(
        records,
        &MEMORY,
        "the thesis: from 30/s on it grows without bound",
    ));
    checks
}

//! wsqos/fig-58: offers in a database: response time.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{DATABASE, DIFFERS, over_rate, rises};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-58",
    title: "offers in a database: response time",
    claim: "If the broker queries a database for each request, the response time is below 21 ms up to 50 requests a second. Then it rises to about 15 seconds, where it stays.",
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
        "Mean response time, offers in a database",
        y,
        &DATABASE,
        "response_ms",
    );
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(rises(
        records,
        &DATABASE,
        "the thesis: below 21 ms, then 15 s",
    ));
    checks
}

//! wsqos/fig-60: offers in a database: CPU of the server.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{DATABASE, DIFFERS, lowest, over_rate, overloaded};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-60",
    title: "offers in a database: CPU of the server",
    claim: "If the broker queries a database for each request, the server's CPU is full at the rate at which throughput has its maximum.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &brokers::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("share of the processor that is acted", Unit::Share);
    let chart = over_rate(
        records,
        "The broker's processor, offers in a database",
        y,
        &DATABASE,
        "busy",
    );
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let [low, high] = [lowest, overloaded].map(|at| at(records, DATABASE.who, "busy"));
    checks.push(Check::claim(
        high >= 0.9,
        format!("Past the limit the processor that the broker acts, four times slower than this machine's, is full: {:.0} % of it, after {:.0} % at the lowest rate.", 100.0 * high, 100.0 * low),
    ));
    checks
}

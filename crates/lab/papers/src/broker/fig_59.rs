//! wsqos/fig-59: offers in a database: throughput.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{DATABASE, DIFFERS, MEMORY, linear, over_rate, stays};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::curves::capacity;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-59",
    title: "offers in a database: throughput",
    claim: "If the broker queries a database for each request, throughput is linear up to 65 requests a second. Its maximum is reached at a rate of 100.",
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
        "Throughput, offers in a database",
        y,
        &DATABASE,
        "throughput_per_s",
    );
    vec![Plot::Chart(chart)]
}

/// The answer of this run: lookups a second of each design.
pub(crate) fn answer(records: &Records) -> String {
    let [walk, database, ours] =
        [MEMORY.who, DATABASE.who, brokers::OURS].map(|who| capacity(records, who));
    format!(
        "With 27 offers a broker that compares them in memory answers {walk:.0} requests a second, one that asks a database for each {database:.0}, our index {ours:.0} (thesis: 25 and 65)."
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(linear(records, &DATABASE));
    checks.push(stays(records, &DATABASE));
    let [walk, database, ours] =
        [MEMORY.who, DATABASE.who, brokers::OURS].map(|who| capacity(records, who));
    checks.push(Check::claim(
        database >= 2.0 * walk,
        format!("In the thesis the database answered 2.6 times what comparing in memory did (65 against 25/s); here {:.2} times.", database / walk),
    ).because("comparing 27 offers in memory costs less than asking a database; the thesis's broker parsed XML for each offer."));
    checks.push(Check::claim(
        ours >= database,
        format!("Ours answers {:.2} times as many as the database, with 27 offers: {ours:.0}/s against {database:.0}.", ours / database),
    ).because("with 27 offers the lookup is a small part of a request."));
    checks
}

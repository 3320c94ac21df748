//! wsqos/fig-56 to fig-60: brokers that compare offers in memory and in a database.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::broker_plots::{
    DATABASE, DIFFERS, MEMORY, Theirs, linear, lowest, over_rate, overloaded, rises, stays,
};
use super::brokers;
use crate::planned::THESIS;
use crate::testbed::curves::capacity;
use crate::testbed::instrument::accounted;

pub(crate) static FIG_56: Figure = Figure {
    id: "wsqos/fig-56",
    title: "offers in memory: response time",
    claim: "If the broker compares every offer in memory for each request, the response time rises from 30 requests a second on.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &brokers::STUDY,
    plot: |records| {
        response_times(
            records,
            "Mean response time, offers compared in memory",
            &MEMORY,
        )
    },
    checks: |records| {
        growth(
            records,
            &MEMORY,
            "the thesis: from 30/s on it grows without bound",
        )
    },
    differs: DIFFERS,
};

pub(crate) static FIG_57: Figure = Figure {
    id: "wsqos/fig-57",
    title: "offers in memory: throughput",
    claim: "If the broker compares every offer in memory for each request, it answers 25 requests a second at most.",
    plot: |records| throughput(records, "Throughput, offers compared in memory", &MEMORY),
    checks: memory,
    ..FIG_56
};

pub(crate) static FIG_58: Figure = Figure {
    id: "wsqos/fig-58",
    title: "offers in a database: response time",
    claim: "If the broker queries a database for each request, the response time is below 21 ms up to 50 requests a second. Then it rises to about 15 seconds, where it stays.",
    plot: |records| {
        response_times(
            records,
            "Mean response time, offers in a database",
            &DATABASE,
        )
    },
    checks: |records| growth(records, &DATABASE, "the thesis: below 21 ms, then 15 s"),
    ..FIG_56
};

pub(crate) static FIG_59: Figure = Figure {
    id: "wsqos/fig-59",
    title: "offers in a database: throughput",
    claim: "If the broker queries a database for each request, throughput is linear up to 65 requests a second. Its maximum is reached at a rate of 100.",
    plot: |records| throughput(records, "Throughput, offers in a database", &DATABASE),
    checks: database,
    ..FIG_56
};

pub(crate) static FIG_60: Figure = Figure {
    id: "wsqos/fig-60",
    title: "offers in a database: CPU of the server",
    claim: "If the broker queries a database for each request, the server's CPU is full at the rate at which throughput has its maximum.",
    plot: processor,
    checks: full_processor,
    ..FIG_56
};

/// The answer of this run: lookups a second of each design.
pub(crate) fn answer(records: &Records) -> String {
    let [walk, database, ours] =
        [MEMORY.who, DATABASE.who, brokers::OURS].map(|who| capacity(records, who));
    format!(
        "With 27 offers a broker that compares them in memory answers {walk:.0} requests a second, one that asks a database for each {database:.0}, our index {ours:.0} (thesis: 25 and 65)."
    )
}

fn response_times(records: &Records, title: &str, theirs: &Theirs) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    vec![Plot::Chart(over_rate(
        records,
        title,
        y,
        theirs,
        "response_ms",
    ))]
}

fn throughput(records: &Records, title: &str, theirs: &Theirs) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    vec![Plot::Chart(over_rate(
        records,
        title,
        y,
        theirs,
        "throughput_per_s",
    ))]
}

fn processor(records: &Records) -> Vec<Plot> {
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

/// Checks the growth of the response time, with the thesis's numbers as the reason.
fn growth(records: &Records, theirs: &Theirs, reason: &str) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(rises(records, theirs, reason));
    checks
}

fn memory(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(stays(records, &MEMORY));
    let [walk, ours] = [MEMORY.who, brokers::OURS].map(|who| capacity(records, who));
    checks.push(Check::claim(
        (0.8..=1.25).contains(&(ours / walk)),
        format!("With 27 offers an index gains nothing over comparing all of them: ours answers {ours:.0}/s, this one {walk:.0}, {:.2} times as many.", ours / walk),
    ).because("with 27 offers the lookup is a small part of a request; what differs is the rest."));
    checks
}

fn database(records: &Records) -> Vec<Check> {
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

fn full_processor(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let [low, high] = [lowest, overloaded].map(|at| at(records, DATABASE.who, "busy"));
    checks.push(Check::claim(
        high >= 0.9,
        format!("Past the limit the processor that the broker acts, four times slower than this machine's, is full: {:.0} % of it, after {:.0} % at the lowest rate.", 100.0 * high, 100.0 * low),
    ));
    checks
}

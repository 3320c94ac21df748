//! overload/fig-07: throughput in a closed loop.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records, least, most};
use posthaste_units::Span;

use super::curves::THROUGHPUT;
use super::fig_06::{chart, places};
use super::testbed::RequestForm;
use super::{PAPER, closed};
use crate::testbed::curves::plateau;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-07",
    title: "closed loop: throughput against clients",
    claim: "With many clients, throughput saturates and is about the same for both kinds: a closed loop hides the difference. With few clients the page is ahead.",
    paper: PAPER,
    budget: Span::from_secs(15),
    study: &closed::STUDY,
    plot,
    checks,
    differs: include_str!("fig_07.md").trim_ascii(),
};

/// Number of clients from which the server is never idle.
const MANY: f64 = 100.0;

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    vec![Plot::Chart(chart(
        records,
        "Closed loop: throughput",
        y,
        THROUGHPUT,
    ))]
}

fn checks(records: &Records) -> Vec<Check> {
    let curve = |form| places(records, form, "throughput_per_s");
    let (service, page) = (curve(RequestForm::Service), curve(RequestForm::Page));
    let mut checks = instrument::accounting(records);
    for (form, curve) in [(RequestForm::Service, &service), (RequestForm::Page, &page)] {
        let many = curve.iter().filter(|(x, _)| *x >= MANY).map(|(_, y)| *y);
        let (low, high) = (least(many.clone()), most(many));
        checks.push(
            Check::claim(
                high / low < 1.25,
                format!(
                    "{}: throughput saturates, {low:.0} to {high:.0}/s from {MANY} clients on.",
                    form.name()
                ),
            )
            .because(NOISE),
        );
    }
    let (ours, theirs) = (plateau(&service, MANY), plateau(&page, MANY));
    let ratio = ours / theirs;
    checks.push(Check::claim(
        (ratio - 1.0).abs() < 0.1,
        format!("With many clients both are about the same: {ours:.0}/s as a Web service and {theirs:.0}/s as a page, {ratio:.2} (held to be the same within 10 %)."),
    ).because("our generator has a core of its own, so that the two capacities show; equal throughput means that the paper's generator or network was the limit."));
    let first = |curve: &[(f64, f64)]| curve.first().map_or(f64::NAN, |(_, y)| *y);
    let (ours, theirs) = (first(&service), first(&page));
    checks.push(
        Check::claim(
            theirs > ours,
            format!("With one client the page is ahead: {theirs:.0}/s against {ours:.0}/s."),
        )
        .because(NOISE),
    );
    checks
}

//! overload/fig-10: rejected connections in an open loop.

use posthaste_draw::{Axis, Point, Series, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records, least, most};
use posthaste_units::Span;

use super::curves::{REJECTED, over_rate, places, series};
use super::open::OVERLOADED;
use super::testbed::RequestForm;
use super::{PAPER, early_rejection, open, paper};
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-10",
    title: "open loop: rejected connections against request rate",
    claim: "There are no rejections up to 150/s (Web service) and 190/s (page). From there they rise steeply.",
    paper: PAPER,
    budget: Span::from_secs(33),
    study: &open::STUDY,
    plot,
    checks,
    differs: include_str!("fig_10.md").trim_ascii(),
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("rejected", Unit::PerSecond);
    let mut chart = over_rate(
        records,
        "Open loop: connections not established within 50 ms",
        y,
        &RequestForm::PAIR,
    );
    chart.series = RequestForm::PAIR
        .map(|form| series(records, form, REJECTED))
        .into();
    for (form, to) in [
        (RequestForm::Service, paper::SERVICE_REJECTS_AFTER),
        (RequestForm::Page, paper::PAGE_REJECTS_AFTER),
    ] {
        let none =
            [paper::REJECTIONS_FROM, to].map(|rate| Point::new(rate / paper::PAGE_CAPACITY, 0.0));
        chart
            .series
            .push(Series::line(form.name(), none).of_paper());
    }
    chart
        .notes
        .push("The paper's lines end where its rejections begin.".to_owned());
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounting(records);
    checks.extend(early_rejection::no_early_rejection(records));
    let page = records.number("capacity page");
    let mut begins = [f64::NAN; 2];
    for (begin, form) in begins.iter_mut().zip(RequestForm::PAIR) {
        let own = records.number(&format!("capacity {}", form.key())) / page;
        let curve = places(records, form, "rejected_per_s");
        let rejects = |point: &&(f64, f64)| point.1 > 0.01 * point.0 * page;
        *begin = curve.iter().find(rejects).map_or(f64::NAN, |point| point.0);
        checks.push(Check::claim(
            *begin > 0.93 * own,
            format!("{}: nothing (less than 1 %) is rejected up to its capacity, {own:.2} of the page's; the first rate at which more is, is {:.2}.", form.name(), *begin),
        ).because(NOISE));
        let slopes = curve
            .iter()
            .filter(|(x, _)| *x >= OVERLOADED)
            .map(|(x, y)| y / ((x - own) * page));
        let (low, high) = (least(slopes.clone()), most(slopes));
        checks.push(Check::claim(
            low > 0.85 && high < 1.15,
            format!("{}: then rejections rise steeply: {low:.2} to {high:.2} of each request beyond capacity is rejected.", form.name()),
        ).because(NOISE));
    }
    let [service, page] = begins;
    checks.push(Check::claim(
        service < page,
        format!("The Web service rejects at lower rates than the page: from {service:.2} on against {page:.2} of the page's capacity (paper: 0.83 and 1.06)."),
    ).because(NOISE));
    checks
}

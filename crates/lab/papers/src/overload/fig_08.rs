//! overload/fig-08: mean response time in an open loop.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::curves::{RESPONSE, over_rate, paper_capacities, places, series};
use super::open::OVERLOADED;
use super::testbed::RequestForm;
use super::{PAPER, open};
use crate::testbed::curves::{crossing, nearest, plateau};
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-08",
    title: "open loop: mean response time against request rate",
    claim: "With sclient the response time rises sharply at about 145/s (Web service) and 180/s (page), stays flat while rejections take the excess, and rises again at very high rates (interrupts). Under overload it is more than 30 % higher for the Web service.",
    paper: PAPER,
    budget: Span::from_secs(33),
    study: &open::STUDY,
    plot,
    checks,
    differs: include_str!("fig_08.md").trim_ascii(),
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    let mut chart = over_rate(
        records,
        "Open loop: mean response time of those not rejected",
        y,
        &RequestForm::PAIR,
    );
    chart.series = RequestForm::PAIR
        .map(|form| series(records, form, RESPONSE))
        .into();
    chart.marks = paper_capacities();
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounting(records);
    let curve = |form| places(records, form, "response_ms");
    let [service, page] = RequestForm::PAIR.map(curve);
    let [service_flat, page_flat] = [&service, &page].map(|curve| plateau(curve, OVERLOADED));
    let rise = |curve: &[(f64, f64)], flat: f64| crossing(curve, flat / 2.0);
    let (early, late) = (rise(&service, service_flat), rise(&page, page_flat));
    checks.push(Check::claim(
        early < late,
        format!("The Web service's response time rises sharply at a lower rate: half of its plateau is reached at {early:.2}, the page's at {late:.2} of the page's capacity (paper: 0.81 and 1)."),
    ).because(NOISE));
    for (form, curve, flat) in [
        (RequestForm::Service, &service, service_flat),
        (RequestForm::Page, &page, page_flat),
    ] {
        let (first, second, last) = (
            nearest(curve, 1.5),
            nearest(curve, 2.0),
            nearest(curve, 3.0),
        );
        checks.push(Check::claim(
            (second / first - 1.0).abs() < 0.2,
            format!("{}: flat while rejections take the excess, {first:.1} ms at 1.5 and {second:.1} ms at 2 times the page's capacity.", form.name()),
        ).because(NOISE));
        checks.push(Check::claim(
            last / second > 1.2,
            format!("{}: a second rise at very high rates, {last:.1} ms at 3 times the page's capacity against {flat:.1} ms on the plateau.", form.name()),
        ).because("on loopback the kernel drops a SYN that finds the queue full on the core of the generator; the server is not interrupted.").better_if((last / second).is_finite()));
    }
    let cost = |form: RequestForm| records.number(&format!("cpu_us {}", form.key()));
    checks.push(Check::claim(
        service_flat / page_flat > 1.3,
        format!("More than 30 % higher for the Web service under overload: here {:+.0} % ({service_flat:.1} against {page_flat:.1} ms). A request costs this machine {:.1} µs of processor time as a Web service and {:.1} µs as a page.", 100.0 * (service_flat / page_flat - 1.0), cost(RequestForm::Service), cost(RequestForm::Page)),
    ).because("reading and writing SOAP costs our server a smaller share than .NET of 2003.").better_if(service_flat.is_finite() && page_flat.is_finite()));
    checks
}

//! overload/fig-09: throughput in an open loop.

use posthaste_draw::{Axis, Point, Series, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records, least, most};
use posthaste_units::Span;

use super::curves::{THROUGHPUT, over_rate, paper_capacities, places, series};
use super::testbed::RequestForm;
use super::{PAPER, open, paper};
use crate::testbed::curves::nearest;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "overload/fig-09",
    title: "open loop: throughput against request rate",
    claim: "Throughput follows the rate up to 140/s. The Web service's throughput then falls. The page's peaks at about 180/s and falls. The page's capacity is more than 25 % higher.",
    paper: PAPER,
    budget: Span::from_secs(33),
    study: &open::STUDY,
    plot,
    checks,
    differs: include_str!("fig_09.md").trim_ascii(),
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("throughput", Unit::PerSecond);
    let mut chart = over_rate(records, "Open loop: throughput", y, &RequestForm::PAIR);
    let capacity = records.number("capacity page");
    let theirs = |rate: f64| {
        Point::new(
            rate / paper::PAGE_CAPACITY,
            rate / paper::PAGE_CAPACITY * capacity,
        )
    };
    let follows = theirs(paper::FOLLOWS_TO);
    chart.series = RequestForm::PAIR
        .map(|form| series(records, form, THROUGHPUT))
        .into();
    chart
        .series
        .push(Series::line(RequestForm::Service.name(), [theirs(0.0), follows.clone()]).of_paper());
    let page = [theirs(0.0), follows, theirs(paper::PAGE_CAPACITY)];
    chart
        .series
        .push(Series::line(RequestForm::Page.name(), page).of_paper());
    chart.marks = paper_capacities();
    vec![Plot::Chart(chart)]
}

/// The answer of this run: the throughput at three times the capacity.
pub(crate) fn answer(records: &Records) -> String {
    let left = RequestForm::PAIR.map(|form| {
        let curve = places(records, form, "throughput_per_s");
        100.0 * nearest(&curve, 3.0) / most(curve.iter().map(|point| point.1))
    });
    let [service, page] =
        RequestForm::PAIR.map(|form| records.number(&format!("capacity {}", form.key())));
    let verdict = if left.iter().all(|left| *left >= 90.0) {
        "Yes"
    } else {
        "Not all of it"
    };
    format!(
        "{verdict}: at three times the rate that it can serve {:.0} % (Web service) and {:.0} % (page) of the highest throughput are left. The paper's fell. The Web service does {:.0} % of what the page does (paper: 80 %).",
        left[0],
        left[1],
        100.0 * service / page
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounted(records);
    let follows_to = paper::FOLLOWS_TO / paper::PAGE_CAPACITY;
    for form in RequestForm::PAIR {
        let rows = records.table("points").rows();
        let low = rows
            .filter(|row| row.text("form") == form.key() && row.number("rate_ratio") <= follows_to);
        let worst = low.map(|row| row.number("throughput_per_s") / row.number("rate_per_s"));
        let worst = least(worst);
        checks.push(Check::claim(
            worst > 0.98,
            format!("{}: throughput follows the rate up to {follows_to:.2} of the page's capacity (paper: 140 of 180/s): at least {worst:.3} of it.", form.name()),
        ).because(NOISE));
    }
    for form in [RequestForm::Service, RequestForm::Page] {
        let curve = places(records, form, "throughput_per_s");
        let (at, peak) = curve.iter().fold((f64::NAN, 0.0), |best, point| {
            if point.1 > best.1 { *point } else { best }
        });
        let last = nearest(&curve, 3.0);
        checks.push(Check::claim(
            last < 0.9 * peak,
            format!("{}: throughput peaks and falls: {peak:.0}/s at {at:.2}, {last:.0}/s at 3 times the page's capacity ({:.0} % of the peak).", form.name(), 100.0 * last / peak),
        ).because("the kernel drops a SYN that finds the queue full, and this costs the server nothing; in the paper each packet of the excess cost it an interrupt.").better_if(last.is_finite()));
    }
    let capacity = |form: RequestForm| records.number(&format!("capacity {}", form.key()));
    let (service, page) = (capacity(RequestForm::Service), capacity(RequestForm::Page));
    let cost = |form: RequestForm| records.number(&format!("cpu_us {}", form.key()));
    checks.push(Check::claim(
        page / service > 1.25,
        format!("The page's capacity is more than 25 % higher: here {:+.0} % ({page:.0} against {service:.0}/s; {:.1} and {:.1} µs of processor time per request at this machine's own speed).", 100.0 * (page / service - 1.0), cost(RequestForm::Page), cost(RequestForm::Service)),
    ).because("reading and writing SOAP costs our server a smaller share than .NET of 2003.").better_if(page >= service));
    checks
}

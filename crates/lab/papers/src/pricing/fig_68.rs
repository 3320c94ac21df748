//! wsqos/fig-68: price and load while demand grows.

use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::adaptive;
use super::adaptive_plots::{DIFFERS, accounted, clock, course, plot as picture};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-68",
    title: "price and load while demand grows",
    claim: "While demand grows, the price stays 0 until the mean load passes 80 %. Then it climbs to 0.50 EUR and the load falls.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &adaptive::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

/// End of the picture, in the thesis's minutes.
const ENDS: f64 = 5.0;

fn plot(records: &Records) -> Vec<Plot> {
    picture(
        "Price and load while demand grows",
        &course(records, 0.0, ENDS),
    )
}

fn checks(records: &Records) -> Vec<Check> {
    let course = course(records, 0.0, ENDS);
    let minute_of = |is: &dyn Fn(f64, f64) -> bool| {
        let first = course.iter().find(|now| is(now.price, now.load));
        first.map_or(f64::NAN, |now| now.minute)
    };
    let busy = minute_of(&|_, load| load > 0.8);
    let dear = minute_of(&|price, _| price > 0.0);
    let most = course.iter().map(|now| now.price).fold(0.0, f64::max);
    let after = course
        .iter()
        .skip_while(|now| now.price < most)
        .map(|now| now.load);
    let least = after.fold(f64::NAN, f64::min);
    let mut checks = accounted(records);
    checks.push(Check::claim(
        (dear - busy).abs() < 0.5,
        format!(
            "The mean load passes 80 % at {} and the price rises at {} (the thesis: 2:12).",
            clock(busy),
            clock(dear)
        ),
    ));
    checks.push(Check::claim(
        most >= 0.2 && least < 0.7,
        format!(
            "The price climbs to {most:.2} EUR (the thesis: 0.50) and the load falls to {:.0} %.",
            least * 100.0
        ),
    ));
    checks
}

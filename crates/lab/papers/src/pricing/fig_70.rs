//! wsqos/fig-70: price and load while demand falls.

use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::adaptive;
use super::adaptive_plots::{DIFFERS, Moment, accounted, clock, course, plot as picture};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-70",
    title: "price and load while demand falls",
    claim: "After the clients with maximum prices of 0.10, 0.40 and 0.50 EUR have stopped, the load falls to 70 % and the price goes down step by step to 0.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &adaptive::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn falling(records: &Records) -> Vec<Moment> {
    course(records, records.number("falls") - 0.5, f64::INFINITY)
}

fn plot(records: &Records) -> Vec<Plot> {
    picture("Price and load while demand falls", &falling(records))
}

fn checks(records: &Records) -> Vec<Check> {
    let falls = records.number("falls");
    let after: Vec<Moment> = falling(records)
        .into_iter()
        .filter(|now| now.minute >= falls)
        .collect();
    let begin = after.first().map_or(f64::NAN, |now| now.price);
    let rests = after.iter().rev().take_while(|now| now.price == 0.0).last();
    let free = rests.map_or(f64::NAN, |now| now.minute);
    let down: Vec<&Moment> = after
        .iter()
        .filter(|now| now.minute <= free && now.load < 0.7)
        .collect();
    let climbs = down
        .windows(2)
        .filter(|pair| pair[1].price > pair[0].price)
        .count();
    let mut checks = accounted(records);
    checks.push(Check::claim(
        begin > 0.0 && free.is_finite() && climbs == 0,
        format!("After demand has fallen at {} the price goes down from {begin:.2} EUR step by step and is 0 from {} on; it rose {climbs} times while the load was below 70 %.", clock(falls), clock(free)),
    ));
    checks
}

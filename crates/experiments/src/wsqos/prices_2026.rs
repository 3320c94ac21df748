//! wsqos/prices-2026: what protects a server that is asked for more than it can do.

use posthaste_draw::{Axis, Bar, Bars, Group, Unit};
use posthaste_units::Span;

use super::PAPER;
use super::prices::{CAPACITY, EASY, GUARDS, STUDY};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::{Records, Row};

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/prices-2026",
    title: "what protects a server that is asked for more than it can do",
    claim: "Beyond the thesis: with prices that follow a fast signal a server goes on doing what it can, for those who value it most, and nobody waits long.",
    paper: PAPER,
    budget: Span::from_secs(60),
    study: &STUDY,
    plot,
    checks,
    differs: "The thesis had one controller and did not look at what its server did meanwhile. The shop takes 2 ms for each request, one after the other, so that its capacity is known; ten clients with budgets from 0.05 to 0.95 EUR ask for multiples of it by Poisson processes. The thesis's controller is run thirty times as fast. What is judged begins one quote's life after demand has stepped up.",
};

/// What is drawn: a column, what it is, its axis and unit.
const QUANTITIES: [(&str, &str, &str, Unit); 4] = [
    (
        "goodput",
        "Requests answered well",
        "of what can be done",
        Unit::Share,
    ),
    (
        "p99_ms",
        "Response time of requests answered well",
        "p99",
        Unit::Millis,
    ),
    ("revenue_per_s", "Revenue", "EUR a second", Unit::Count),
    (
        "price_deviation",
        "How much the price varies",
        "standard deviation, EUR",
        Unit::Count,
    ),
];

fn plot(records: &Records) -> Vec<Plot> {
    let bars = |(column, title, words, unit): &(&str, &str, &str, Unit)| {
        let demands = demands(records);
        let groups = demands.iter().map(|demand| Group {
            label: format!("{demand} times"),
            bars: GUARDS
                .iter()
                .map(|guard| Bar::single(guard.name, of(records, guard.name, *demand, column)))
                .collect(),
        });
        Plot::Bars(Bars {
            title: (*title).to_owned(),
            value: Axis::linear(*words, *unit),
            groups: groups.collect(),
            ..Bars::default()
        })
    };
    QUANTITIES.iter().map(bars).collect()
}

/// Past what can be done.
fn demands(records: &Records) -> Vec<f64> {
    let rows = records.table("runs").rows();
    let mut demands: Vec<f64> = rows
        .map(|row| row.number("demand"))
        .filter(|demand| *demand > EASY)
        .collect();
    demands.sort_by(f64::total_cmp);
    demands.dedup();
    demands
}

fn of(records: &Records, guard: &str, demand: f64, column: &str) -> f64 {
    let mut rows = records.table("runs").rows();
    let row = rows.find(|row| row.text("guard") == guard && row.number("demand") == demand);
    row.map_or(f64::NAN, |row| row.number(column))
}

fn checks(records: &Records) -> Vec<Check> {
    let rows: Vec<Row<'_>> = records.table("runs").rows().collect();
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let intended = sum("intended");
    let mut checks = vec![
        Check::instrument(
            intended > 0.0 && intended == sum("outcomes"),
            format!("Each of {intended:.0} intended requests has one outcome."),
        ),
        Check::instrument(
            sum("quoted_refused") == 0.0,
            format!(
                "Of {:.0} requests with a quote {:.0} were refused.",
                sum("quoted"),
                sum("quoted_refused")
            ),
        ),
    ];
    let Some(most) = demands(records).last().copied() else {
        return checks;
    };
    let controller = "proportional-integral";
    let [goodput, p99] = ["goodput", "p99_ms"].map(|column| of(records, controller, most, column));
    let easy = of(records, "none", EASY, "p99_ms");
    checks.push(Check::claim(
        goodput >= 0.95,
        format!("At {most} times what can be done, {:.0} requests a second, {controller} prices leave {:.1} % of it done (asked: 95).", most * CAPACITY, goodput * 100.0),
    ));
    checks.push(Check::claim(
        p99 <= 2.0 * easy,
        format!("Who is served has a p99 of {p99:.0} ms; at {EASY} times what can be done it is {easy:.0} without protection (asked: twice that at most)."),
    ));
    let [steps, ours] =
        ["steps", controller].map(|guard| of(records, guard, most, "price_deviation").powi(2));
    checks.push(Check::claim(
        ours <= steps / 5.0,
        format!("In a steady load its price varies {:.1} times less than that of steps (variance; asked: 5).", steps / ours.max(1e-12)),
    ));
    checks
}

//! wsqos/fig-54: response time, compressed for all, for none, and by load.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::sclient::{self, Mix, places};
use super::sclient_plots::{DIFFERS, over_rate, overloaded};
use crate::planned::THESIS;
use crate::testbed::curves::nearest;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-54",
    title: "all, none and dynamic: response time",
    claim: "The response time is almost that without compression. The remaining gap is larger than it should be, because reading the CPU load costs too much.",
    paper: THESIS,
    budget: Span::from_secs(50),
    study: &sclient::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

/// Load that overloads the gateway with all compressed, but not with none.
const BETWEEN: f64 = 0.8;

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    let title = "Mean response time, compressed for all, none, and as can be afforded";
    let chart = over_rate(records, title, y, &Mix::EVERY, "response_ms");
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let at = |mix| nearest(&places(records, mix, "response_ms"), BETWEEN);
    let [all, none, dynamic] = Mix::EVERY.map(at);
    checks.push(Check::claim(
        dynamic < all && dynamic < 10.0 * none,
        format!("At {BETWEEN} of the capacity without compression dynamic answers in {dynamic:.2} ms, none in {none:.2} and all in {all:.1}."),
    ).because(NOISE));
    let [none, dynamic] =
        [Mix::None, Mix::Dynamic].map(|mix| overloaded(records, mix, "response_ms"));
    checks.push(Check::claim(
        dynamic <= 1.1 * none,
        format!("The paper's gap is gone: under overload dynamic answers in {dynamic:.2} ms, none in {none:.2}, {:+.1} % (the gateway looks at its load five times a second, off the path of requests).", 100.0 * (dynamic / none - 1.0)),
    ).because(NOISE));
    checks
}

//! wsqos/fig-52: response time, all compressed against none.

use posthaste_draw::{Axis, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::fig_51::PAIR;
use super::sclient::{self, Mix, places};
use super::sclient_plots::{DIFFERS, over_rate, overloaded};
use crate::planned::THESIS;
use crate::testbed::curves::crossing;
use crate::testbed::instrument::accounted;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-52",
    title: "all compressed against none: response time",
    claim: "With compression for all, the response time rises at a lower rate. Under overload it is about 3 s higher.",
    paper: THESIS,
    budget: Span::from_secs(50),
    study: &sclient::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

fn plot(records: &Records) -> Vec<Plot> {
    let y = Axis::linear("mean response time, complete replies", Unit::Millis);
    let title = "Mean response time, all compressed against none";
    let chart = over_rate(records, title, y, &PAIR, "response_ms");
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    let [all, none] = PAIR.map(|mix| overloaded(records, mix, "response_ms"));
    checks.push(Check::claim(
        all > 1.1 * none,
        format!("Under overload the response time is higher: {all:.1} against {none:.1} ms, {:+.0} % (paper: about 3 s more).", 100.0 * (all / none - 1.0)),
    ).because(NOISE));
    let rise = |mix: Mix, flat: f64| crossing(&places(records, mix, "response_ms"), flat / 2.0);
    let (early, late) = (rise(Mix::All, all), rise(Mix::None, none));
    checks.push(Check::claim(
        early < late,
        format!("It rises at a lower rate: half of what it is under overload is reached at {early:.2} of the capacity without compression, and at {late:.2} where nothing is compressed."),
    ).because(NOISE));
    checks
}

//! wsqos/fig-66: an ideal proxy, background 1,024 kbyte/s.

use posthaste_study::{Check, Figure, NOISE, Records};
use posthaste_units::Span;

use super::qos_proxy::{BACKGROUNDS, MarkingPoint};
use super::selection;
use super::selection_plots::{DIFFERS, ideal_checks, ideal_plot, past};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-66",
    title: "an ideal proxy, background 1,024 kbyte/s",
    claim: "If the router tells classes by address, AF's throughput is the same at both background loads. That of best effort is about 10 replies a second lower at the higher load.",
    paper: THESIS,
    budget: Span::from_secs(30),
    study: &selection::STUDY,
    plot: ideal_plot::<1>,
    checks,
    differs: DIFFERS,
};

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = ideal_checks::<1>(records);
    let [af, rest] = [MarkingPoint::Address, MarkingPoint::Nobody]
        .map(|marks| BACKGROUNDS.map(|background| past(records, marks, background)));
    checks.push(Check::claim(
        (af[1] / af[0] - 1.0).abs() <= 0.02,
        format!(
            "AF's throughput is the same at both background loads: {:.1} and {:.1} replies a second.",
            af[0], af[1]
        ),
    ).because(NOISE));
    checks.push(Check::claim(
        rest[1] < rest[0],
        format!(
            "Best effort's is lower at the higher one: {:.1} and {:.1} replies a second, {:.1} apart (the thesis: about 10).",
            rest[0],
            rest[1],
            rest[0] - rest[1]
        ),
    ).because(NOISE));
    checks
}

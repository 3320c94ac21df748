//! wsqos/fig-63 to fig-66: the gain of the proxy and of an ideal one, with each background.

use posthaste_study::{Check, Figure, NOISE, Records};
use posthaste_units::Span;

use super::qos_proxy::{BACKGROUNDS, MarkingPoint};
use super::selection;
use super::selection_plots::{DIFFERS, gain_checks, gain_plot, ideal_checks, ideal_plot, past};
use crate::planned::THESIS;

pub(crate) static FIG_63: Figure = Figure {
    id: "wsqos/fig-63",
    title: "gain of the proxy, background 800 kbyte/s",
    claim: "With the proxy slightly more replies arrive in almost all cases. The best gain is 2.8 replies a second, with 800 kbyte/s at 60 requests a second.",
    paper: THESIS,
    budget: Span::from_secs(30),
    study: &selection::STUDY,
    plot: gain_plot::<0>,
    checks: gain_checks::<0>,
    differs: DIFFERS,
};

pub(crate) static FIG_64: Figure = Figure {
    id: "wsqos/fig-64",
    title: "gain of the proxy, background 1,024 kbyte/s",
    claim: "With the proxy slightly more replies arrive in almost all cases.",
    plot: gain_plot::<1>,
    checks: gain_checks::<1>,
    ..FIG_63
};

pub(crate) static FIG_65: Figure = Figure {
    id: "wsqos/fig-65",
    title: "an ideal proxy, background 800 kbyte/s",
    claim: "If the router classifies by address, AF's throughput is the same at both background loads. That of best effort is about 10 replies a second lower at the higher load.",
    plot: ideal_plot::<0>,
    checks: ideal_checks::<0>,
    ..FIG_63
};

pub(crate) static FIG_66: Figure = Figure {
    id: "wsqos/fig-66",
    title: "an ideal proxy, background 1,024 kbyte/s",
    claim: "If the router classifies by address, AF's throughput is the same at both background loads. That of best effort is about 10 replies a second lower at the higher load.",
    plot: ideal_plot::<1>,
    checks: both_backgrounds,
    ..FIG_63
};

/// The answer of this run: replies a second past the guarantee, with marks, without, and in the ideal case.
pub(crate) fn answer(records: &Records) -> String {
    let [nobody, gateway, address] = [
        MarkingPoint::Nobody,
        MarkingPoint::Gateway,
        MarkingPoint::Address,
    ]
    .map(|marks| past(records, marks, 800));
    let verdict = if gateway > nobody { "Yes" } else { "No" };
    format!(
        "{verdict}: next to 800 kB/s of other traffic {gateway:.1} marked replies a second arrive, {nobody:.1} without marks, {address:.1} where the router classifies by address."
    )
}

/// Checks of the ideal proxy, and of both backgrounds together.
fn both_backgrounds(records: &Records) -> Vec<Check> {
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

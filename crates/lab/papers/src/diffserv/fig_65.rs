//! wsqos/fig-65: an ideal proxy, background 800 kbyte/s.

use posthaste_study::{Figure, Records};
use posthaste_units::Span;

use super::qos_proxy::MarkingPoint;
use super::selection;
use super::selection_plots::{DIFFERS, ideal_checks, ideal_plot, past};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-65",
    title: "an ideal proxy, background 800 kbyte/s",
    claim: "If the router tells classes by address, AF's throughput is the same at both background loads. That of best effort is about 10 replies a second lower at the higher load.",
    paper: THESIS,
    budget: Span::from_secs(30),
    study: &selection::STUDY,
    plot: ideal_plot::<0>,
    checks: ideal_checks::<0>,
    differs: DIFFERS,
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
        "{verdict}: next to 800 kB/s of other traffic {gateway:.1} marked replies a second arrive, {nobody:.1} without marks, {address:.1} where the router tells them by address."
    )
}

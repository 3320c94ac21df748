//! wsqos/fig-64: gain of the proxy, background 1,024 kbyte/s.

use posthaste_study::Figure;
use posthaste_units::Span;

use super::selection;
use super::selection_plots::{DIFFERS, gain_checks, gain_plot};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-64",
    title: "gain of the proxy, background 1,024 kbyte/s",
    claim: "With the proxy slightly more replies arrive in almost all cases.",
    paper: THESIS,
    budget: Span::from_secs(30),
    study: &selection::STUDY,
    plot: gain_plot::<1>,
    checks: gain_checks::<1>,
    differs: DIFFERS,
};

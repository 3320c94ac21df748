//! wsqos/fig-63: gain of the proxy, background 800 kbyte/s.

use posthaste_study::Figure;
use posthaste_units::Span;

use super::selection;
use super::selection_plots::{DIFFERS, gain_checks, gain_plot};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
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

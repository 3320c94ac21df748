//! wsqos/fig-64: gain of the proxy, background 1,024 kbyte/s.

use posthaste_units::Span;

use super::PAPER;
use super::diffserv;
use super::diffserv_plots::{DIFFERS, gain_checks, gain_plot};
use crate::figure::Figure;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-64",
    title: "gain of the proxy, background 1,024 kbyte/s",
    claim: "With the proxy slightly more replies arrive in almost all cases.",
    paper: PAPER,
    budget: Span::from_secs(30),
    study: &diffserv::STUDY,
    plot: gain_plot::<1>,
    checks: gain_checks::<1>,
    differs: DIFFERS,
};

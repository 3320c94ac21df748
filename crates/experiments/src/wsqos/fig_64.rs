//! wsqos/fig-64: gain of the proxy, background 1,024 kbyte/s.

use posthaste_units::Span;

use super::PAPER;
use super::diffserv;
use super::diffserv_plots::{DIFFERS, accounted, gains, over_rate};
use super::qos_proxy::{BACKGROUNDS, Marks};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-64",
    title: "gain of the proxy, background 1,024 kbyte/s",
    claim: "With the proxy slightly more replies arrive almost everywhere.",
    paper: PAPER,
    budget: Span::from_secs(30),
    study: &diffserv::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

const BACKGROUND: u64 = BACKGROUNDS[1];

fn plot(records: &Records) -> Vec<Plot> {
    let title = "Replies with and without marks, others sending 1,024 kbyte/s";
    let chart = over_rate(records, title, &[Marks::Nobody, Marks::Gateway], BACKGROUND);
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(gains(records, BACKGROUND));
    checks
}

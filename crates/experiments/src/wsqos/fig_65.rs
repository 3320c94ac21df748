//! wsqos/fig-65: an ideal proxy, background 800 kbyte/s.

use posthaste_units::Span;

use super::PAPER;
use super::diffserv;
use super::diffserv_plots::{DIFFERS, accounted, ideal, over_rate};
use super::qos_proxy::{BACKGROUNDS, Marks};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-65",
    title: "an ideal proxy, background 800 kbyte/s",
    claim: "Where the router tells classes by address, AF's throughput is the same at both background loads, and that of best effort is about 10 replies a second lower at the higher one.",
    paper: PAPER,
    budget: Span::from_secs(30),
    study: &diffserv::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

const BACKGROUND: u64 = BACKGROUNDS[0];

fn plot(records: &Records) -> Vec<Plot> {
    let title = "Marks by the gateway beside classes by address, others sending 800 kbyte/s";
    let chart = over_rate(records, title, &Marks::ALL, BACKGROUND);
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(ideal(records, BACKGROUND));
    checks
}

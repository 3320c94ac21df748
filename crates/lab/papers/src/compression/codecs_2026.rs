//! wsqos/codecs-2026: the best coding for each bandwidth.

use posthaste_bookshop::Size;
use posthaste_compression::{CostModel, STEPS};
use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{Check, Figure, Plot, RecordRow, Records, least, most};
use posthaste_units::{Size as Bytes, Span};

use super::codecs::{self, NONE, REPLIES, bytes_and_seconds};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/codecs-2026",
    title: "beyond the paper: which coding pays at which bandwidth",
    claim: "On slow lines the smallest reply arrives first, whatever it costs. On fast lines the reply with the cheapest coding arrives first, and beyond some bandwidth the one without coding. On a busy server all of these bounds are lower.",
    paper: THESIS,
    budget: Span::from_secs(10),
    study: &codecs::STUDY,
    plot,
    checks,
    differs: include_str!("codecs_2026.md").trim_ascii(),
};

/// Bits per second, from a bad modem to a good network card.
const RANGE: (f64, f64) = (10e3, 10e9);
const PER_DECADE: i32 = 12;

/// Cost factors of CPU time, 1/(1 - busy): for an idle server and one that is 79 % busy.
const PRICES: [(&str, f64); 2] = [("idle", 1.0), ("79 % busy", 1.0 / 0.21)];

fn bandwidths() -> impl Iterator<Item = f64> {
    let decades = (RANGE.1 / RANGE.0).log10() as i32;
    (0..=decades * PER_DECADE).map(|n| RANGE.0 * 10f64.powf(f64::from(n) / f64::from(PER_DECADE)))
}

fn steps() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.name()).chain([NONE])
}

/// Seconds until a reply has arrived over `bandwidth`.
fn arrival(records: &Records, reply: Size, step: &str, bandwidth: f64, price: f64) -> f64 {
    let (bytes, seconds) = bytes_and_seconds(records, reply, step);
    let work = if step == NONE { 0.0 } else { seconds * price };
    8.0 * bytes / bandwidth + work
}

/// The coding of the fastest reply, with the bandwidths from which it is the fastest.
fn best(records: &Records, reply: Size, price: f64) -> Vec<(f64, &'static str)> {
    let mut changes: Vec<(f64, &'static str)> = Vec::new();
    for bandwidth in bandwidths() {
        let time = |step: &&str| arrival(records, reply, step, bandwidth, price);
        let first = steps().min_by(|one, other| time(one).total_cmp(&time(other)));
        let first = first.unwrap_or(NONE);
        if changes.last().is_none_or(|last| last.1 != first) {
            changes.push((bandwidth, first));
        }
    }
    changes
}

/// Describes the coding for each range of bandwidths in words.
fn ladder(changes: &[(f64, &str)]) -> String {
    let bounds = changes
        .iter()
        .skip(1)
        .map(|change| Some(change.0))
        .chain([None]);
    let steps = changes
        .iter()
        .zip(bounds)
        .map(|((_, step), until)| match until {
            Some(until) if until >= 1e9 => format!("{step} up to {:.1} Gbit/s", until / 1e9),
            Some(until) if until >= 1e6 => format!("{step} up to {:.3} Mbit/s", until / 1e6),
            Some(until) => format!("{step} up to {:.0} kbit/s", until / 1e3),
            None => format!("{step} beyond"),
        });
    steps.collect::<Vec<_>>().join(", ")
}

fn plot(records: &Records) -> Vec<Plot> {
    let mut plots: Vec<Plot> = PRICES
        .iter()
        .map(|(name, price)| Plot::Chart(arrivals(records, name, *price)))
        .collect();
    plots.push(Plot::Chart(throughput(records)));
    plots
}

/// Arrival time of heavy 1, relative to that of the uncompressed reply.
fn arrivals(records: &Records, name: &str, price: f64) -> Chart {
    let reply = Size::Heavy1;
    let x = Axis::log("bandwidth of the client's line", Unit::Bits);
    let y = Axis::linear("time to arrive / time as it is", Unit::Share);
    let title = format!("16 kB on a server that is {name}: how soon it arrives");
    let mut chart = Chart::new(title, x, y);
    let series = |step: &'static str| {
        let points = bandwidths().map(|bandwidth| {
            let time = |step| arrival(records, reply, step, bandwidth, price);
            Point::new(bandwidth, time(step) / time(NONE))
        });
        // Values above two are irrelevant.
        Series::line(step, points.filter(|point| point.y <= 2.0))
    };
    chart.series = steps().map(series).collect();
    chart.notes = REPLIES
        .iter()
        .map(|reply| {
            let (bytes, _) = bytes_and_seconds(records, *reply, NONE);
            let steps = ladder(&best(records, *reply, price));
            format!("{bytes:.0} B arrive first with: {steps}.")
        })
        .collect();
    chart
}

/// Replies per second from one core over a line that all clients share.
fn throughput(records: &Records) -> Chart {
    let reply = Size::Heavy1;
    let x = Axis::log("bandwidth of the server's line", Unit::Bits);
    let y = Axis::log("16 kB replies of one core", Unit::PerSecond);
    let mut chart = Chart::new("What a server's line and one core let through", x, y);
    let series = |step: &'static str| {
        let points = bandwidths()
            .filter(|bandwidth| *bandwidth >= 1e6)
            .map(|bandwidth| Point::new(bandwidth, passes(records, reply, step, bandwidth)));
        Series::line(step, points)
    };
    chart.series = steps().map(series).collect();
    chart
}

/// Replies per second, limited by the core or by the line.
fn passes(records: &Records, reply: Size, step: &str, bandwidth: f64) -> f64 {
    let (bytes, seconds) = bytes_and_seconds(records, reply, step);
    let (_, plain) = bytes_and_seconds(records, reply, NONE);
    let work = if step == NONE { plain } else { plain + seconds };
    (1.0 / work).min(bandwidth / (8.0 * bytes))
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = Vec::new();
    let rows = records.table("codecs").rows();
    let known = |row: &RecordRow<'_>| {
        ["bytes", "microseconds"]
            .iter()
            .all(|cell| row.number(cell).is_finite())
    };
    let measured = rows.filter(known).count();
    checks.push(Check::instrument(
        measured == REPLIES.len() * (STEPS.len() + 1),
        format!(
            "{measured} pairs of reply and coding were measured, of {}.",
            REPLIES.len() * (STEPS.len() + 1)
        ),
    ));
    for reply in REPLIES {
        let [idle, busy] = PRICES.map(|(_, price)| best(records, reply, price));
        let none = |changes: &[(f64, &str)]| {
            changes
                .last()
                .filter(|last| last.1 == NONE)
                .map_or(f64::INFINITY, |last| last.0)
        };
        let (bytes, _) = bytes_and_seconds(records, reply, NONE);
        checks.push(Check::goal(
            none(&busy) < none(&idle) && none(&busy) > 100e6,
            format!(
                "{bytes:.0} B: on an idle server {}; on a busy one {}.",
                ladder(&idle),
                ladder(&busy)
            ),
        ));
    }
    let assumed = CostModel::default();
    let ratios: Vec<f64> = REPLIES
        .into_iter()
        .flat_map(|reply| STEPS.map(|step| (reply, step)))
        .map(|(reply, step)| {
            let (plain, _) = bytes_and_seconds(records, reply, NONE);
            let assumed = assumed.estimate(step, Bytes::from_bytes(plain as u64)).cpu;
            bytes_and_seconds(records, reply, step.name()).1 / assumed.as_secs_f64()
        })
        .collect();
    let (low, high) = (least(ratios.iter().copied()), most(ratios.iter().copied()));
    checks.push(Check::goal(
        low > 0.25 && high < 4.0,
        format!("What the gateway assumes before it has compressed anything is of the right size: measured are {low:.2} to {high:.2} times that, for {} pairs of reply and coding.", ratios.len()),
    ).because("the assumed speeds are those of another processor."));
    checks
}

//! wsqos/policies-2026: the compressed share of each policy by load, and the effect on clients.

use posthaste_draw::{Along, Axis, Chart, Mark, Point, Role, Series, Unit};
use posthaste_study::{
    ALL_DUE, Check, Figure, MEDIANS, MedianEstimate, NOISE, Plot, Records, estimate, in_ms, most,
};
use posthaste_units::Span;

use super::peers::PeerProxy;
use super::policies::{self, POLICIES, names};
use crate::planned::THESIS;
use crate::testbed::curves::reservations;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/policies-2026",
    title: "beyond the paper: share compressed, throughput and tails against load, compared with other proxies",
    claim: "A policy that stops compression when the server is busy, and starts it again when it is not, swings between all and nothing, and the queue swings with it. A compressed share that keeps the load below the threshold falls steadily as the load grows, and the tail stays short.",
    paper: THESIS,
    budget: Span::from_secs(75),
    study: &policies::STUDY,
    plot,
    checks,
    differs: include_str!("policies_2026.md").trim_ascii(),
};

/// Goal for the 99th percentile, in ms.
const TAIL: f64 = 20.0;

/// Maximum rise of a share between two loads that still counts as falling.
const WOBBLE: f64 = 0.07;

/// Median of `column` at `load`.
fn at(records: &Records, who: &str, load: f64, column: &str) -> MedianEstimate {
    let rows = records.table("runs").rows();
    let here = rows.filter(|row| row.text("who") == who && row.number("load") == load);
    estimate(&here.map(|row| row.number(column)).collect::<Vec<_>>())
}

fn loads(records: &Records) -> Vec<f64> {
    let mut loads: Vec<f64> = records
        .table("runs")
        .rows()
        .map(|row| row.number("load"))
        .collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
}

fn plot(records: &Records) -> Vec<Plot> {
    let pictures = [
        (
            "Share of the replies that is compressed",
            Axis::linear("compressed", Unit::Share),
            "packed",
        ),
        (
            "99th percentile of the response time, all requests due",
            Axis::log("response time, p99", Unit::Millis),
            "due_p99_ms",
        ),
        (
            "Throughput",
            Axis::linear("throughput", Unit::PerSecond),
            "throughput_per_s",
        ),
    ];
    let charts = pictures.map(|(title, y, column)| chart(records, title, y, column));
    charts.map(Plot::Chart).into()
}

fn chart(records: &Records, title: &str, y: Axis, column: &str) -> Chart {
    let x = Axis::linear(
        "request rate / what the gateway does when it compresses all",
        Unit::Count,
    );
    let mut chart = Chart::new(title, x, y);
    let series = |who: &str| {
        let points = loads(records).into_iter().map(|load| {
            let found = at(records, who, load, column);
            let point = Point::new(load, found.median);
            if found.high.is_finite() {
                point.with_interval(found.low, found.high)
            } else {
                point
            }
        });
        Series::line(who, points.filter(|point| point.y.is_finite()))
    };
    chart.series = names()
        .map(series)
        .filter(|series| !series.points.is_empty())
        .collect();
    if column == "due_p99_ms" {
        chart.marks = vec![Mark {
            along: Along::Y,
            at: TAIL,
            label: "20 ms".to_owned(),
            role: Role::Ours,
        }];
    }
    let capacity = records.number("capacity");
    chart
        .notes
        .push(format!("Load 1 is {capacity:.0}/s. {}", caption(records)));
    let absent = records
        .parameters()
        .get("not installed")
        .filter(|names| !names.is_empty());
    if let Some(absent) = absent {
        chart
            .notes
            .push(format!("Not installed here, and so not drawn: {absent}."));
    }
    chart.notes.push(ALL_DUE.to_owned());
    chart.notes.push(lateness(records));
    chart.notes.push(dropped(records));
    chart.notes.extend(reservations(records));
    chart
}

/// Number of runs per point, and their length.
fn caption(records: &Records) -> String {
    let parameter = |name: &str| records.parameters().get(name).map_or("", String::as_str);
    match parameter("runs of each point") {
        "1" => format!("Each point is one run of {}.", parameter("length of a run")),
        _ => MEDIANS.to_owned(),
    }
}

/// Lateness of the generator at each load.
fn lateness(records: &Records) -> String {
    let late = |load: &f64| {
        let rows = records.table("runs").rows();
        let here = rows.filter(|row| row.number("load") == *load);
        let late: Vec<f64> = here.map(|row| row.number("lateness_p99_ms")).collect();
        format!("{:.1} at {load}", estimate(&late).median)
    };
    let late: Vec<String> = loads(records).iter().map(late).collect();
    format!(
        "Lateness of the generator, 99th percentile in ms, median of all proxies: {}. Response times count from when requests were due.",
        late.join(", ")
    )
}

/// Requests dropped for lack of a connection.
fn dropped(records: &Records) -> String {
    let dropped = |who: &str| {
        let rows = records.table("runs").rows();
        let own = rows.filter(|row| row.text("who") == who);
        let sum: f64 = own.map(|row| row.number("dropped")).sum();
        (sum > 0.0).then(|| format!("{sum:.0} at {who}"))
    };
    let dropped: Vec<String> = names().filter_map(dropped).collect();
    match dropped.as_slice() {
        [] => "No request found 1000 others still waiting.".to_owned(),
        some => format!(
            "Requests that found 1000 others still waiting, and were dropped: {}.",
            some.join(", ")
        ),
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = vec![instrument::identity(records)];
    let apart = records.number("shares apart");
    checks.push(Check::instrument(
        apart < 0.02,
        format!("The share compressed that follows from the bytes is the one that the gateway counts: {:.2} points apart at most.", 100.0 * apart),
    ));
    let loads = loads(records);
    for policy in POLICIES {
        let shares: Vec<f64> = loads
            .iter()
            .map(|load| at(records, policy, *load, "packed").median)
            .collect();
        let worst = most(shares.windows(2).map(|two| two[1] - two[0]));
        checks.push(Check::goal(
            worst <= WOBBLE,
            format!("`{policy}`: the share falls as the load grows: from one load to the next it rises by {:.1} points at most.", 100.0 * worst.max(0.0)),
        ).because(NOISE));
    }
    let haproxy = PeerProxy::Haproxy.name();
    for load in loads.into_iter().filter(|load| (0.8..=1.5).contains(load)) {
        checks.extend(beside(records, haproxy, load));
    }
    checks
}

/// Compares `threshold` with HAProxy at one load. `None` if HAProxy is not installed.
fn beside(records: &Records, haproxy: &str, load: f64) -> Option<Check> {
    let median = |who, column| at(records, who, load, column).median;
    let [ours, theirs] = ["threshold", haproxy]
        .map(|who| ["packed", "due_p99_ms", "throughput_per_s"].map(|column| median(who, column)));
    (!theirs[1].is_nan()).then(|| {
        let saved = |[share, _, throughput]: [f64; 3]| share * throughput;
        Check::goal(
            ours[1] <= TAIL && saved(ours) >= saved(theirs),
            format!(
                "At {load}: `threshold` compresses {:.0} % with {} at the 99th percentile of all requests due and answers {:.0}/s, HAProxy {:.0} % with {} and {:.0}/s (wanted: as many compressed replies, and 20 ms at most).",
                100.0 * ours[0], in_ms(ours[1]), ours[2], 100.0 * theirs[0], in_ms(theirs[1]), theirs[2]
            ),
        )
    })
}

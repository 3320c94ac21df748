//! wsqos/promises-2026: requirements of the gateway under load.

use posthaste_draw::{Axis, Bar, Bars, Group, Role, Unit};
use posthaste_study::{
    ALL_DUE, Check, Figure, MEDIANS, MedianEstimate, NOISE, Plot, Records, estimate, in_ms,
};
use posthaste_units::Span;

use super::promises::{self, ASKED, GATE, PLAIN_BEYOND, REPEATED, SATURATED, TAILS};
use crate::planned::THESIS;
use crate::testbed::curves::reservations;
use crate::testbed::instrument;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/promises-2026",
    title: "beyond the paper: what deciding costs, and what it saves, compared with HAProxy",
    claim: "The load is one and a half times the throughput of HAProxy when it compresses everything. There the gateway compresses at least as much as HAProxy with its CPU limit, with 20 ms at the 99th percentile at most, and everything if replies repeat. At saturation the decision costs 3 % of the throughput at most, whether none or a third of the clients ask for compression. Clients that ask get compressed replies. The plain path's tail is not longer than HAProxy's.",
    paper: THESIS,
    budget: Span::from_secs(80),
    study: &promises::STUDY,
    plot,
    checks,
    differs: include_str!("promises_2026.md").trim_ascii(),
};

/// Goals: share of the throughput, and milliseconds.
const KEPT: f64 = 0.97;
const TAIL: f64 = 20.0;

/// Goal for repeated replies: all but the first are compressed.
const ALL: f64 = 0.99;

/// Measurements of `who`, one per run.
fn values(records: &Records, table: &str, who: &str, column: &str) -> Vec<f64> {
    let rows = records.table(table).rows();
    let own = rows.filter(|row| row.text("who") == who);
    own.map(|row| row.number(column)).collect()
}

fn estimate_of(records: &Records, who: &str, column: &str) -> MedianEstimate {
    estimate(&values(records, "runs", who, column))
}

fn median(records: &Records, who: &str, column: &str) -> f64 {
    estimate_of(records, who, column).median
}

fn is_there(records: &Records, who: &str) -> bool {
    median(records, who, "throughput_per_s").is_finite()
}

fn plot(records: &Records) -> Vec<Plot> {
    let bars = |title: &str, value: Axis, table: &str, column: &str, who: &[&'static str]| {
        let bar_of = |who: &str| estimate(&values(records, table, who, column));
        let there = who.iter().filter(|who| bar_of(who).median.is_finite());
        let silent = who.iter().filter(|who| bar_of(who).median.is_infinite());
        let silent = silent.map(|who| format!("{who}: no reply, and so no bar."));
        let group = |who: &&'static str| {
            let found = bar_of(who);
            let (part, label) = who.split_once(": ").unwrap_or(("", who));
            Group {
                label: label.to_owned(),
                bars: vec![Bar {
                    label: String::new(),
                    role: Role::Ours,
                    parts: vec![(part.to_owned(), found.median)],
                    interval: found.high.is_finite().then_some((found.low, found.high)),
                }],
            }
        };
        let mut bars = Bars {
            title: title.to_owned(),
            value,
            groups: there.map(group).collect(),
            notes: [MEDIANS, ALL_DUE]
                .map(str::to_owned)
                .into_iter()
                .chain(silent)
                .chain(lateness(records, who))
                .collect(),
        };
        bars.notes.extend(reservations(records));
        Plot::Bars(bars)
    };
    let beyond = [GATE[0], REPEATED, GATE[1], PLAIN_BEYOND];
    let saturated = [SATURATED, ASKED].concat();
    let all = vec![
        bars(
            "At 1.5 times what HAProxy compresses whole: share compressed",
            Axis::linear("compressed", Unit::Share),
            "runs",
            "packed",
            &beyond[..3],
        ),
        bars(
            "The same: 99th percentile of the response time, all requests due",
            Axis::linear("response time, p99", Unit::Millis),
            "runs",
            "due_p99_ms",
            &beyond,
        ),
        bars(
            "At saturation, two and two side by side: processor time of a reply",
            Axis::linear("processor time, µs", Unit::Count),
            "beside",
            "reply_us",
            &saturated,
        ),
        bars(
            "At 70 % of the plain capacity: 99th percentile of the response time, all requests due",
            Axis::linear("response time, p99", Unit::Millis),
            "runs",
            "due_p99_ms",
            &TAILS,
        ),
    ];
    // Without HAProxy, or if stopped, some pictures are empty. They are omitted.
    let drawn = |plot: &Plot| !matches!(plot, Plot::Bars(bars) if bars.groups.is_empty());
    all.into_iter().filter(drawn).collect()
}

/// Lateness of the generator.
fn lateness(records: &Records, who: &[&str]) -> Option<String> {
    let late = who
        .iter()
        .map(|who| median(records, who, "lateness_p99_ms"));
    let worst = late.filter(|late| late.is_finite()).reduce(f64::max)?;
    Some(format!(
        "Lateness of the generator, 99th percentile: {worst:.2} ms in the worst of these medians; response times count from when requests were due."
    ))
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = vec![instrument::identity(records)];
    checks.extend(beyond(records));
    checks.push(saturated(
        records,
        SATURATED,
        "half of the clients leave it open, half refuse",
        "all refuse",
    ));
    checks.push(saturated(
        records,
        ASKED,
        "a third asks, a third refuses, a third leaves it open",
        "a gateway that compresses for exactly the askers",
    ));
    let tables = ["runs", "beside"].map(|table| records.table(table));
    let rows = tables.iter().flat_map(|table| table.rows());
    let denied: f64 = rows.map(|row| row.number("denied")).sum();
    let served: f64 = tables[0].rows().map(|row| row.number("ok")).sum();
    checks.push(Check::goal(
        denied == 0.0 && served > 0.0,
        format!("Every client that asks is served compressed: {denied:.0} were not."),
    ));
    checks.extend(tails(records));
    checks
}

/// Checks at 1.5 times HAProxy's capacity.
fn beyond(records: &Records) -> Vec<Check> {
    if !is_there(records, GATE[0]) {
        let sentence = "Not measured: what happens at 1.5 times the rate that HAProxy compresses, which is not here.";
        return vec![
            Check::goal(false, sentence.to_owned())
                .because("HAProxy is not installed on this machine."),
        ];
    }
    let [ours, repeated, theirs] = [GATE[0], REPEATED, GATE[1]].map(|who| {
        ["packed", "due_p99_ms", "throughput_per_s", "busy"]
            .map(|column| median(records, who, column))
    });
    let rate = median(records, GATE[0], "offered_per_s");
    let plain = ["due_p99_ms", "busy"].map(|column| median(records, PLAIN_BEYOND, column));
    let mut checks = vec![Check::goal(
        ours[1] <= TAIL,
        format!(
            "At {rate:.0}/s the gateway compresses {:.1} % with {} at the 99th percentile of all requests due (wanted: 20 ms at most, 10 better) and {:.0} % of the processor; plain it has {} and {:.0} %.",
            100.0 * ours[0],
            in_ms(ours[1]),
            100.0 * ours[3],
            in_ms(plain[0]),
            100.0 * plain[1]
        ),
    ).because(NOISE)];
    checks.push(Check::goal(
        repeated[0] >= ALL && repeated[1] <= TAIL,
        format!(
            "Where replies repeat they are compressed once: {:.1} % go out compressed, with {} at the 99th percentile and {:.0} % of the processor.",
            100.0 * repeated[0],
            in_ms(repeated[1]),
            100.0 * repeated[3]
        ),
    ).because(NOISE));
    if is_there(records, GATE[1]) {
        let replies = |numbers: [f64; 4]| numbers[0] * numbers[2];
        checks.push(Check::goal(
            ours[0] >= theirs[0],
            format!(
                "Where each reply has to be compressed, the gateway's share is HAProxy's at least: HAProxy compresses {:.1} % of what it answers, with {} and {:.0} % of the processor: {:.0} compressed replies a second of {:.0}, the gateway {:.0} of {:.0}.",
                100.0 * theirs[0], in_ms(theirs[1]), 100.0 * theirs[3], replies(theirs), theirs[2], replies(ours), ours[2]
            ),
        ));
    }
    checks
}

/// Throughput of one mix relative to another's: the inverse ratio of their CPU times per reply.
fn saturated(records: &Records, who: [&str; 2], mix: &str, other: &str) -> Check {
    let [ours, plain] = who.map(|who| values(records, "beside", who, "reply_us"));
    let ratios = ours.iter().zip(&plain).map(|(ours, plain)| plain / ours);
    let (ratios, pairs) = (ratios.collect::<Vec<_>>(), ours.len());
    let [kept, ours, plain] = [ratios, ours, plain].map(|values| estimate(&values));
    let packed = estimate(&values(records, "beside", who[0], "packed")).median;
    Check::goal(
        kept.median >= KEPT,
        format!(
            "At saturation, where {mix}: {:.1} % of the throughput of {other}, by the processor time of a reply in the median of {pairs} runs side by side ({:.1} to {:.1} %; wanted: 97 %, 99 better); medians {:.1} and {:.1} µs. {:.1} % of the replies that may be are compressed.",
            100.0 * kept.median,
            100.0 * kept.low,
            100.0 * kept.high,
            ours.median,
            plain.median,
            100.0 * packed
        ),
    )
}

/// Tail of the plain path, compared with other proxies.
fn tails(records: &Records) -> Option<Check> {
    let [ours, haproxy, nginx] = TAILS.map(|who| estimate_of(records, who, "due_p99_ms"));
    let rate = median(records, TAILS[0], "offered_per_s");
    // They alternate, so that a slow period of the machine affects a whole round.
    let round = |who| values(records, "runs", who, "due_p99_ms");
    let ratios = round(TAILS[0]).into_iter().zip(round(TAILS[1]));
    let ratio = estimate(
        &ratios
            .map(|(ours, theirs)| ours / theirs)
            .collect::<Vec<_>>(),
    );
    (!ratio.median.is_nan()).then(|| {
        Check::goal(
            ratio.median <= 1.0,
            format!(
                "At {rate:.0}/s, plain: {:.2} ms at the 99th percentile ({:.2} to {:.2}), HAProxy {:.2} ({:.2} to {:.2}), nginx {:.2}; {:.2} of HAProxy's in the median round ({:.2} to {:.2}; wanted: not above HAProxy's).",
                ours.median, ours.low, ours.high, haproxy.median, haproxy.low, haproxy.high, nginx.median,
                ratio.median, ratio.low, ratio.high
            ),
        ).because("possibly noise: at this load the tail of each may be that of the machine.")
    })
}

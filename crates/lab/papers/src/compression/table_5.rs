//! wsqos/table-5: the handheld on good GPRS with a loaded server.

use posthaste_draw::{Axis, Bar, Bars, Group, Role, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, RecordRow, Records, least};
use posthaste_units::Span;

use super::loaded::{self, OtherClients};
use super::paper;
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/table-5",
    title: "the handheld on GPRS next to a loaded server",
    claim: "While sclient loads the server with 80 to 160 requests a second that all ask for compression, the handheld's service time rises from 10 to 17 s, already at 120/s. If half of the requests ask for it and half leave the choice to the server (dynamic), the service time stays below 10.6 s up to 140/s.",
    paper: THESIS,
    budget: Span::from_secs(180),
    study: &loaded::STUDY,
    plot,
    checks,
    differs: include_str!("table_5.md").trim_ascii(),
};

fn row<'a>(records: &'a Records, others: OtherClients, rate: f64) -> Option<RecordRow<'a>> {
    let mut rows = records.table("cells").rows();
    rows.find(|row| row.text("others") == others.name() && row.number("rate_per_s") == rate)
}

/// Mean service time in seconds.
fn seconds(records: &Records, others: OtherClients, rate: f64) -> f64 {
    row(records, others, rate).map_or(f64::NAN, |row| row.number("service_ms") / 1e3)
}

/// The paper's service times, in seconds.
fn theirs(others: OtherClients) -> [f64; paper::RATES.len()] {
    let ms = match others {
        OtherClients::All => paper::TABLE_5_ALL,
        OtherClients::Dynamic => paper::TABLE_5_DYNAMIC,
    };
    ms.map(|ms| ms / 1e3)
}

fn plot(records: &Records) -> Vec<Plot> {
    let group = |(index, rate): (usize, f64)| {
        let pair = |others: OtherClients| {
            let bar = |role, value: f64, interval| Bar {
                label: String::new(),
                role,
                parts: vec![(others.name().to_owned(), value)],
                interval,
            };
            let ends = row(records, others, rate).map(|row| {
                let [low, high] =
                    ["service_low_ms", "service_high_ms"].map(|column| row.number(column) / 1e3);
                (low, high)
            });
            [
                bar(Role::Ours, seconds(records, others, rate), ends),
                bar(Role::Paper, theirs(others)[index], None),
            ]
        };
        Group {
            label: format!("{rate}/s"),
            bars: OtherClients::BOTH.into_iter().flat_map(pair).collect(),
        }
    };
    let measured = |(_, rate): &(usize, f64)| row(records, OtherClients::All, *rate).is_some();
    let [all, none] = ["all", "none"].map(|name| records.number(&format!("capacity {name}")));
    vec![Plot::Bars(Bars {
        title: "Service time of the handheld next to a loaded gateway".to_owned(),
        value: Axis::linear("mean service time", Unit::Seconds),
        groups: paper::RATES.into_iter().enumerate().filter(measured).map(group).collect(),
        notes: vec![
            format!("The gateway answers {none:.0} plain replies a second and {all:.0} compressed (paper: 135 and 90); rates are the paper's, scaled."),
            "In each pair ours is on the left and the paper's on the right, dashed. Whiskers are the shortest and the longest fetch; who had no connection within 10 s is in none.".to_owned(),
        ],
    })]
}

fn checks(records: &Records) -> Vec<Check> {
    let rows = || records.table("cells").rows();
    let sum = |column: &str| {
        rows()
            .map(|row| row.number(column))
            .fold(0.0, |all, one| all + one)
    };
    let [fetches, ok, unconnected, otherwise] =
        ["fetches", "ok", "unconnected", "otherwise"].map(sum);
    let mut names: Vec<&str> = rows().map(|row| row.text("otherwise_as")).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    let names = match names.as_slice() {
        [] => String::new(),
        some => format!(" ({})", some.join(", ")),
    };
    let [intended, ended] = ["load_intended", "load_ended"].map(sum);
    let line = |row: &RecordRow<'_>| row.number("service_low_ms") - row.number("computed_ms");
    let soonest = least(rows().map(|row| line(&row)));
    let [late, lost] = ["late p99 ms", "lost"].map(|name| records.number(name));
    let mut checks = vec![
        Check::instrument(
            ok + unconnected + otherwise == fetches && ok > 0.0,
            format!(
                "{ok} of the handheld's {fetches} replies came whole and were decoded; {unconnected} times it had no connection within 10 s and gave up, {otherwise} fetches had a connection and no whole reply{names}."
            ),
        ),
        Check::instrument(
            ended == intended && intended > 0.0,
            format!("Of sclient's {intended} requests {ended} have an outcome."),
        ),
        Check::instrument(
            soonest >= 0.0,
            format!(
                "No reply was there before the line could have brought it: the soonest {soonest:.0} ms later, decompression included."
            ),
        ),
        Check::instrument(
            late <= LATE_MS && lost == 0.0,
            format!(
                "Packets left at most {late:.3} ms after their time, but for one of a hundred (bound: {LATE_MS}); {lost} were lost that the link would not have dropped."
            ),
        ),
    ];
    checks.extend(claims(records));
    checks
}

/// Tolerated lateness of packets. More would be visible in times of seconds.
const LATE_MS: f64 = 20.0;

/// Rates from which the paper's service times are long.
const ALL_FROM: f64 = 120.0;
const DYNAMIC_FROM: f64 = 160.0;

/// Reason for the absence of the paper's steps.
const FASTER: &str = "our server answers thousands of requests a second. Its full queue takes tenths of a second; the paper's took seconds. The remaining effect of overload is a connection that finds the queue full.";

fn claims(records: &Records) -> Vec<Check> {
    let measured = |rate: &f64| seconds(records, OtherClients::All, *rate).is_finite();
    let rates: Vec<f64> = paper::RATES.into_iter().filter(measured).collect();
    let at = |others, rate: f64| seconds(records, others, rate);
    let slow = |others, rate: f64| at(others, rate) > 1.1 * at(others, paper::RATES[0]);
    let only_from = |others, first: f64| {
        !rates.is_empty()
            && rates
                .iter()
                .all(|rate| slow(others, *rate) == (*rate >= first))
    };
    let listed = |others| {
        let pair = |rate: &f64| {
            let index = paper::RATES.iter().position(|known| known == rate);
            let paper = index.map_or(f64::NAN, |index| theirs(others)[index]);
            format!("{:.1} s at {rate}/s (paper: {paper:.1})", at(others, *rate))
        };
        rates.iter().map(pair).collect::<Vec<_>>().join(", ")
    };
    let sooner =
        |rate: &&f64| at(OtherClients::Dynamic, **rate) <= 1.03 * at(OtherClients::All, **rate);
    let sooner = rates.iter().filter(sooner).count();
    vec![
        Check::claim(
            only_from(OtherClients::All, ALL_FROM),
            format!("All compressed: slow from {ALL_FROM}/s on: {}.", listed(OtherClients::All)),
        )
        .because(FASTER),
        Check::claim(
            only_from(OtherClients::Dynamic, DYNAMIC_FROM),
            format!("Dynamic: slow at {DYNAMIC_FROM}/s only: {}.", listed(OtherClients::Dynamic)),
        )
        .because(FASTER),
        Check::claim(
            sooner == rates.len() && sooner > 0,
            format!(
                "Dynamic is never slower than all compressed, by more than 3 %: at {sooner} of {} rates.",
                rates.len()
            ),
        )
        .because(NOISE),
    ]
}

//! Pictures of a sweep or of a comparison: SVG or a page, by the file's name.

use std::collections::BTreeSet;
use std::path::Path;

use posthaste_draw::{
    Axis, Bar, Bars, Block, Cell, Chart, Group, Page, Point, Section, Series, Table, Unit,
};
use posthaste_stats::Statistic;
use posthaste_units::{BitRate, Ratio, Span};

use super::case::{Cases, RECOVERY};
use super::compare::{Compared, compared};
use super::numbers::{Numbers, TIMES};
use super::play::Played;
use crate::commands::Failure;

/// The statistics that are drawn.
const DRAWN: [(Statistic, &str); 4] = [
    (Statistic::Mean, "mean"),
    (Statistic::P50, "p50"),
    (Statistic::P90, "p90"),
    (Statistic::P99, "p99"),
];

/// Refuses a name that does not say what to draw, and where there is nothing to draw.
pub(super) fn check(path: &Path, cases: &Cases) -> Result<(), Failure> {
    match ending(path) {
        Some("svg" | "html") if cases.list.len() > 1 => Ok(()),
        Some("svg" | "html") => Err(Failure::usage(
            "--picture draws several combinations: give an option a list, or --compare remedies",
        )),
        _ => Err(Failure::usage(format!(
            "{}: name the picture FILE.svg or FILE.html",
            path.display()
        ))),
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

/// The picture as a file's content.
pub(super) fn file(path: &Path, cases: &Cases, played: &Played) -> String {
    let mut labels = cases.list.iter().flat_map(|case| &case.labels);
    let blocks = match labels.any(|(option, _)| option == RECOVERY) {
        true => of_comparison(&compared(cases, played)),
        false => of_sweep(cases, played),
    };
    if ending(path) == Some("svg") {
        let first = blocks.iter().find_map(|block| match block {
            Block::Chart(chart) => Some(chart.svg()),
            Block::Bars(bars) => Some(bars.svg()),
            _ => None,
        });
        return first.unwrap_or_default();
    }
    let mut section = Section::new("Response times");
    section.blocks = blocks;
    section.blocks.push(Block::Table(numbers(cases, played)));
    let page = Page {
        title: "posthaste simulate".to_owned(),
        lead: format!("{}.", cases.title),
        sections: vec![section],
        ..Page::default()
    };
    page.html()
}

fn of_comparison(compared: &[Compared<'_>]) -> Vec<Block> {
    let label = |one: &Compared<'_>| match one.place.as_str() {
        "" => one.remedy.to_owned(),
        place => format!("{} {place}", one.remedy),
    };
    let times = compared.iter().map(|one| Group {
        label: label(one),
        bars: DRAWN
            .map(|(statistic, name)| time(one.given, statistic, name))
            .into(),
    });
    let nothing = compared.iter().map(|one| Group {
        label: label(one),
        bars: [("as given", one.given), ("reordered", one.reordered)]
            .map(|(name, numbers)| {
                Bar::single(name, numbers.per_thousand(numbers.sent_for_nothing))
            })
            .into(),
    });
    let times = Bars {
        title: "Response times with each remedy".to_owned(),
        value: Axis::linear("response time", Unit::Millis),
        groups: times.collect(),
        notes: vec!["Lines are 95 % intervals where there are enough transactions.".to_owned()],
    };
    let nothing = Bars {
        title: "Segments sent for nothing with each remedy".to_owned(),
        value: Axis::linear("segments for a thousand connections", Unit::Count),
        groups: nothing.collect(),
        notes: vec![
            "Reordered: on the same path without loss, where packets change places.".to_owned(),
        ],
    };
    [times, nothing]
        .map(|bars| Block::Bars(Box::new(bars)))
        .into()
}

fn time(numbers: &Numbers, statistic: Statistic, name: &str) -> Bar {
    let interval = numbers.response_time_ms.interval(statistic);
    Bar {
        interval: interval.map(|[low, high]| (low, high)),
        ..Bar::single(name, numbers.ms(statistic))
    }
}

/// Against the option that has most values, of those whose values are numbers; a series for each
/// combination of the others.
fn of_sweep(cases: &Cases, played: &Played) -> Vec<Block> {
    let labels = cases.list.first().map_or(&[][..], |case| &case.labels);
    let values = |option: &usize| {
        let values = cases
            .list
            .iter()
            .filter_map(|case| case.labels.get(*option));
        values.collect::<BTreeSet<_>>().len()
    };
    let numeric = (0..labels.len()).filter(|option| place(&labels[*option].1).is_some());
    // Of equals the first.
    let along = numeric.rev().max_by_key(values).unwrap_or(0);
    let option = labels.get(along).map_or("", |(option, _)| option);
    let unit = labels.get(along).and_then(|(_, value)| place(value));
    let x = Axis::linear(option, unit.map_or(Unit::Count, |(_, unit)| unit));
    let charts = [
        (Statistic::Mean, "Mean response time"),
        (Statistic::P99, "p99 of the response time"),
    ];
    let draw = |(statistic, title): (Statistic, &str)| {
        let mut chart = Chart::new(
            title,
            x.clone(),
            Axis::linear("response time", Unit::Millis),
        );
        for (index, (case, numbers)) in cases.list.iter().zip(&played.numbers).enumerate() {
            let mut others = case.labels.clone();
            let value = if others.is_empty() {
                String::new()
            } else {
                others.remove(along).1
            };
            let others: Vec<String> = others
                .into_iter()
                .map(|(option, value)| format!("{option} {value}"))
                .collect();
            let name = others.join(", ");
            let summary = &numbers.response_time_ms;
            let at = place(&value).map_or(index as f64, |(at, _)| at);
            let mut point = Point::new(at, numbers.ms(statistic));
            point.interval = summary.interval(statistic).map(|[low, high]| (low, high));
            point.hint = value;
            match chart.series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => chart.series.push(Series::line(name, [point])),
            }
        }
        Block::Chart(Box::new(chart))
    };
    charts.map(draw).into()
}

/// A value as a number on an axis: milliseconds, bits per second, percent or itself.
fn place(value: &str) -> Option<(f64, Unit)> {
    if let Ok(number) = value.parse::<f64>() {
        Some((number, Unit::Count))
    } else if let Ok(span) = value.parse::<Span>() {
        Some((span.as_millis_f64(), Unit::Millis))
    } else if let Ok(rate) = value.parse::<BitRate>() {
        Some((rate.as_bits() as f64, Unit::Bits))
    } else {
        let share = value.parse::<Ratio>().ok()?;
        Some((share.get(), Unit::Share))
    }
}

fn numbers(cases: &Cases, played: &Played) -> Table {
    let labels = cases.list.first().map_or(&[][..], |case| &case.labels);
    let options = labels.iter().map(|(option, _)| option.as_str());
    let head =
        options
            .chain(TIMES.map(|(_, name)| name))
            .chain(["sent again", "timeouts", "for nothing"]);
    let mut table = Table::new(head);
    for (case, numbers) in cases.list.iter().zip(&played.numbers) {
        let labels = case.labels.iter().map(|(_, value)| Cell::text(value));
        let times = numbers.times().map(Cell::number);
        let counts = [
            numbers.retransmissions,
            numbers.timeouts,
            numbers.sent_for_nothing,
        ];
        let counts = counts.map(|count| Cell::number(count.to_string()));
        table.rows.push(labels.chain(times).chain(counts).collect());
    }
    table
}

//! Pictures of a sweep or of a comparison, as SVG or as a page.

use std::collections::BTreeSet;

use posthaste_draw::{
    Axis, Bar, Bars, Block, Cell, Chart, Group, Page, Point, Section, Series, Table, Unit,
};
use posthaste_stats::{Statistic, has_long_tail, median};
use posthaste_units::{BitRate, Ratio, Span};

use crate::cases::case::{RECOVERY, SimulationCases};
use crate::cases::compare::{ComparedRemedy, RemedyComparison, comparisons};
use crate::cases::numbers::{CaseNumbers, CaseResults, in_ms};

/// Statistics to draw.
const DRAWN: [(Statistic, &str); 4] = [
    (Statistic::Mean, "mean"),
    (Statistic::P50, "p50"),
    (Statistic::P90, "p90"),
    (Statistic::P99, "p99"),
];

/// Note below bars with intervals.
const INTERVALS: &str = "Lines are 95 % intervals where there are enough transactions.";

/// The first chart of the results as SVG. `notes` go below it.
pub fn svg(cases: &SimulationCases, results: &CaseResults, notes: &[String]) -> String {
    let blocks = blocks(cases, results, notes);
    let first = blocks.iter().find_map(|block| match block {
        Block::Chart(chart) => Some(chart.svg()),
        Block::Bars(bars) => Some(bars.svg()),
        _ => None,
    });
    first.expect("a sweep and a comparison have charts")
}

/// All charts of the results and the table, as a page. `notes` go below each chart.
pub fn html(cases: &SimulationCases, results: &CaseResults, notes: &[String]) -> String {
    let mut section = Section::new("Response times");
    section.blocks = blocks(cases, results, notes);
    section.blocks.push(Block::Table(numbers(cases, results)));
    let page = Page {
        title: "posthaste simulate".to_owned(),
        lead: format!("{}.", cases.title),
        sections: vec![section],
        ..Page::default()
    };
    page.html()
}

fn blocks(cases: &SimulationCases, results: &CaseResults, notes: &[String]) -> Vec<Block> {
    let mut labels = cases.list.iter().flat_map(|case| &case.labels);
    let mut blocks = if labels.any(|(option, _)| option == RECOVERY) {
        of_comparison(&comparisons(cases, results), results.are_single())
    } else {
        of_sweep(cases, results)
    };
    for block in &mut blocks {
        match block {
            Block::Chart(chart) => chart.notes.extend_from_slice(notes),
            Block::Bars(bars) => bars.notes.extend_from_slice(notes),
            _ => {}
        }
    }
    blocks
}

/// Bars of the remedies that change something.
fn of_comparison(comparisons: &[RemedyComparison<'_>], single: bool) -> Vec<Block> {
    let groups = |bars: &dyn Fn(&ComparedRemedy<'_>) -> Vec<Bar>| -> Vec<Group> {
        let group_of = |comparison: &RemedyComparison<'_>| {
            let label = |remedy: &str| match comparison.setting.as_str() {
                "" => remedy.to_owned(),
                setting => format!("{remedy} {setting}"),
            };
            let remedies = comparison.remedies.iter();
            let group = |one: ComparedRemedy<'_>| Group {
                label: label(one.remedy),
                bars: bars(&one),
            };
            remedies.copied().map(group).collect::<Vec<Group>>()
        };
        comparisons.iter().flat_map(group_of).collect()
    };
    let nothing = |one: &ComparedRemedy<'_>| {
        let paths = [("as given", one.given), ("reordered", one.reordered)];
        let bar = |(name, numbers): (&str, &CaseNumbers)| {
            let count = if single {
                numbers.sent_for_nothing as f64
            } else {
                numbers.per_thousand(numbers.sent_for_nothing)
            };
            Bar::single(name, count)
        };
        paths.map(bar).into()
    };
    let mut notes: Vec<String> = comparisons.iter().filter_map(unchanged).collect();
    let times = Bars {
        title: "Response times with each remedy".to_owned(),
        value: Axis::linear("response time", Unit::Millis),
        groups: groups(&|one| times(one.given)),
        notes: [interval_note(single), notes.clone()].concat(),
    };
    notes.insert(
        0,
        "Reordered: on the same path without loss, where packets change places.".to_owned(),
    );
    let basis = if single {
        ""
    } else {
        " for a thousand connections"
    };
    let nothing = Bars {
        title: "Segments sent for nothing with each remedy".to_owned(),
        value: Axis::linear(format!("segments{basis}"), Unit::Count),
        groups: groups(&nothing),
        notes,
    };
    [times, nothing]
        .map(|bars| Block::Bars(Box::new(bars)))
        .into()
}

/// Names the remedies that are not drawn, because they change nothing.
fn unchanged(comparison: &RemedyComparison<'_>) -> Option<String> {
    let first = comparison.remedies.first()?.remedy;
    let setting = match comparison.setting.as_str() {
        "" => String::new(),
        setting => format!("{setting}: "),
    };
    let same = comparison.same.join(", ");
    (!same.is_empty()).then(|| format!("{setting}the same as {first}: {same}."))
}

/// Note about intervals, unless there is nothing but single transactions.
fn interval_note(single: bool) -> Vec<String> {
    let note = (!single).then(|| INTERVALS.to_owned());
    note.into_iter().collect()
}

/// The response times of a case: its statistics, or the only time.
fn times(numbers: &CaseNumbers) -> Vec<Bar> {
    if numbers.is_single() {
        vec![time(numbers, Statistic::Mean, "response time")]
    } else {
        DRAWN
            .map(|(statistic, name)| time(numbers, statistic, name))
            .into()
    }
}

fn time(numbers: &CaseNumbers, statistic: Statistic, name: &str) -> Bar {
    let interval = numbers.response_time_ms.interval(statistic);
    Bar {
        interval: interval.map(|[low, high]| (low, high)),
        ..Bar::single(name, numbers.ms(statistic))
    }
}

/// Draws along an option with numeric values. Without one, bars for each case.
fn of_sweep(cases: &SimulationCases, results: &CaseResults) -> Vec<Block> {
    let Some((along, unit)) = along(cases) else {
        return vec![Block::Bars(Box::new(of_names(cases, results)))];
    };
    let labels = cases.list.first().map_or(&[][..], |case| &case.labels);
    let option = labels.get(along).map_or("", |(option, _)| option);
    let x = Axis::linear(option, unit);
    let charts: &[(Statistic, &str)] = if results.are_single() {
        &[(Statistic::Mean, "Response time")]
    } else {
        &[
            (Statistic::Mean, "Mean response time"),
            (Statistic::P99, "p99 of the response time"),
        ]
    };
    let draw = |(statistic, title): &(Statistic, &str)| {
        let series = series(cases, results, along, *statistic);
        let mut chart = Chart::new(*title, x.clone(), time_axis(&series));
        chart.series = series;
        Block::Chart(Box::new(chart))
    };
    charts.iter().map(draw).collect()
}

/// Axis of response times: logarithmic if the longest drawn value is more than
/// [`LONG_TAIL`](posthaste_stats::LONG_TAIL) times the median of the drawn values, otherwise linear.
///
/// Bars always have a linear axis, because their length is the amount.
fn time_axis(series: &[Series]) -> Axis {
    let label = "response time";
    let drawn = || {
        series
            .iter()
            .flat_map(|series| &series.points)
            .map(|point| point.y)
    };
    if has_long_tail(median(drawn()), drawn()) {
        Axis::log(label, Unit::Millis)
    } else {
        Axis::linear(label, Unit::Millis)
    }
}

/// One series for each combination of the other options, from left to right.
fn series(
    cases: &SimulationCases,
    results: &CaseResults,
    along: usize,
    statistic: Statistic,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (case, numbers) in cases.list.iter().zip(&results.numbers) {
        let mut others = case.labels.clone();
        let (_, value) = others.remove(along);
        let others: Vec<String> = others
            .into_iter()
            .map(|(option, value)| format!("{option} {value}"))
            .collect();
        let name = others.join(", ");
        let at = position(&value).map_or(0.0, |(at, _)| at);
        let mut point = Point::new(at, numbers.ms(statistic));
        let interval = numbers.response_time_ms.interval(statistic);
        point.interval = interval.map(|[low, high]| (low, high));
        point.hint = value;
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => all.push(Series::line(name, [point])),
        }
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}

/// A group of bars for each case, by its values.
fn of_names(cases: &SimulationCases, results: &CaseResults) -> Bars {
    let all = cases.list.iter().zip(&results.numbers);
    let groups = all.map(|(case, numbers)| {
        let values = case.labels.iter().map(|(_, value)| value.as_str());
        Group {
            label: values.collect::<Vec<_>>().join(" "),
            bars: times(numbers),
        }
    });
    Bars {
        title: "Response times".to_owned(),
        value: Axis::linear("response time", Unit::Millis),
        groups: groups.collect(),
        notes: interval_note(results.are_single()),
    }
}

/// Returns the numeric option with the most values, and its unit. The first of equals.
fn along(cases: &SimulationCases) -> Option<(usize, Unit)> {
    let options = cases.list.first().map_or(0, |case| case.labels.len());
    let numeric = (0..options).filter_map(|option| {
        let values: BTreeSet<&str> = values(cases, option).collect();
        Some((option, unit(&values)?, values.len()))
    });
    let most = numeric.rev().max_by_key(|(.., count)| *count);
    most.map(|(option, unit, _)| (option, unit))
}

/// An option's value in each of the cases.
fn values(cases: &SimulationCases, option: usize) -> impl Iterator<Item = &str> {
    let cases = cases.list.iter();
    let labels = cases.filter_map(move |case| case.labels.get(option));
    labels.map(|(_, value)| value.as_str())
}

/// The unit in which all of these are numbers. A bare 0 fits any unit.
fn unit(values: &BTreeSet<&str>) -> Option<Unit> {
    let mut unit = None;
    for value in values {
        let (_, found) = position(value)?;
        if *value != "0" && *unit.get_or_insert(found) != found {
            return None;
        }
    }
    Some(unit.unwrap_or_default())
}

/// A value as a number on an axis: milliseconds, bits per second, percent or itself.
fn position(value: &str) -> Option<(f64, Unit)> {
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

fn numbers(cases: &SimulationCases, results: &CaseResults) -> Table {
    let labels = cases.list.first().map_or(&[][..], |case| &case.labels);
    let options = labels.iter().map(|(option, _)| option.as_str());
    let times = results.time_columns();
    let head = options.chain(times.iter().map(|(_, name)| *name)).chain([
        "sent again",
        "timeouts",
        "for nothing",
    ]);
    let mut table = Table::new(head);
    for (case, numbers) in cases.list.iter().zip(&results.numbers) {
        let labels = case.labels.iter().map(|(_, value)| Cell::text(value));
        let cell = |(statistic, _): &(Statistic, &str)| Cell::number(in_ms(numbers.ms(*statistic)));
        let counts = [
            numbers.retransmissions,
            numbers.timeouts,
            numbers.sent_for_nothing,
        ];
        let counts = counts.map(|count| Cell::number(count.to_string()));
        let cells = labels.chain(times.iter().map(cell)).chain(counts);
        table.rows.push(cells.collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use posthaste_draw::Scale;

    use super::*;
    use crate::cases::case::{CaseOptions, CasePath, PacketEffects};
    use crate::{Closer, ProcessingClock, SimulatedExchange, SimulatedService, Totals};

    /// The drawing of a sweep without results, over paths with these labels.
    fn drawn(paths: &[&[(&str, &str)]]) -> Block {
        let exchange = SimulatedExchange {
            pause: Span::ZERO,
            request: 1,
            processing: Span::ZERO,
            reply: 1,
        };
        let owned = |(option, value): &(&str, &str)| ((*option).to_owned(), (*value).to_owned());
        let path = |labels: &&[(&str, &str)]| CasePath {
            labels: labels.iter().map(owned).collect(),
            plans: Default::default(),
        };
        let cases = SimulationCases::new(CaseOptions {
            service: SimulatedService {
                exchanges: vec![exchange],
                clock: ProcessingClock::Request,
                closer: Closer::Server,
            },
            client_tcp: "linux-6".to_owned(),
            server_tcp: "linux-6".to_owned(),
            recovery: Vec::new(),
            compare: Vec::new(),
            paths: paths.iter().map(path).collect(),
            effects: vec![PacketEffects::default()],
        });
        let cases = cases.unwrap();
        let numbers = cases.list.iter().map(|_| CaseNumbers::new(&Totals::new()));
        let results = CaseResults {
            numbers: numbers.collect(),
            stopped: false,
        };
        of_sweep(&cases, &results).remove(0)
    }

    #[test]
    fn numbers_have_one_unit() {
        let unit_of = |values: &[&str]| unit(&values.iter().copied().collect());
        assert_eq!(unit_of(&["0", "5ms", "1s"]), Some(Unit::Millis));
        assert_eq!(unit_of(&["0", "2%"]), Some(Unit::Share));
        assert_eq!(unit_of(&["0", "8"]), Some(Unit::Count));
        assert_eq!(unit_of(&["5ms", "50%"]), None);
        assert_eq!(unit_of(&["8", "up:3"]), None);
    }

    #[test]
    fn points_stand_from_left_to_right() {
        let paths = ["gprs", "lte"].map(|profile| {
            ["20ms", "5ms", "10ms"].map(|delay| [("profile", profile), ("delay", delay)])
        });
        let paths: Vec<&[(&str, &str)]> = paths.iter().flatten().map(|path| &path[..]).collect();
        let Block::Chart(chart) = drawn(&paths) else {
            panic!("no chart");
        };
        assert_eq!(chart.x.label, "delay");
        assert_eq!(chart.series.len(), 2);
        for series in &chart.series {
            let places: Vec<f64> = series.points.iter().map(|point| point.x).collect();
            assert_eq!(places, [5.0, 10.0, 20.0]);
        }
    }

    #[test]
    fn a_long_tail_makes_the_axis_logarithmic() {
        let axis = |ms: [f64; 3]| {
            let points = ms.into_iter().enumerate();
            let points = points.map(|(at, ms)| Point::new(at as f64, ms));
            time_axis(&[Series::line("", points)]).scale
        };
        assert_eq!(axis([100.0, 250.0, 5000.0]), Scale::Linear);
        assert_eq!(axis([100.0, 250.0, 5001.0]), Scale::Log);
    }

    #[test]
    fn names_are_drawn_as_bars() {
        let Block::Bars(bars) = drawn(&[&[("profile", "gprs")], &[("profile", "bluetooth")]])
        else {
            panic!("no bars");
        };
        let labels = bars.groups.iter().map(|group| group.label.as_str());
        assert_eq!(labels.collect::<Vec<_>>(), ["gprs", "bluetooth"]);
    }
}

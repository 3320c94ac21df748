//! The pictures of packet-loss/late-loss-2026.

use posthaste_draw::{Along, Axis, Bar, Bars, Chart, Group, Mark, Point, Role, Series, Unit};
use posthaste_study::{MEDIANS, Plot, Records};

use super::cells::{Cells, quantile};
use super::line::{NetworkLine, PlannedDrops};
use super::remedies::{FARTHEST, PAIRS, SHOWN};
use super::service::{AUTHOR, LATE, SEGMENT};
use super::variants::{
    AGENT, Base, DEFAULT, FIN, NEITHER, NO_PROBE, NO_RACK, NO_SACK, NO_SACK_AGENT, NOTHING, OLD,
    REORDERING, SMALL, SetupChange, TIMER, Variant, variant_of,
};

/// Changes that are tried on both kernels.
const REMEDIES: [SetupChange; 5] = [NOTHING, TIMER, REORDERING, SMALL, AGENT];

/// Changes that explain today's penalty, with the FIN on the data.
const TAKEN_APART: [SetupChange; 5] = [NOTHING, NO_PROBE, NO_RACK, NEITHER, NO_SACK];

/// Returns all pictures.
pub(super) fn plot(records: &Records) -> Vec<Plot> {
    let [near, far] = SHOWN.map(|line| Plot::Chart(by_position(records, line)));
    vec![
        near,
        far,
        Plot::Bars(remedies(records)),
        Plot::Bars(taken_apart(records)),
        Plot::Bars(agent(records, &OLD, [NOTHING, AGENT])),
        Plot::Bars(agent(records, &FIN, [NO_SACK, NO_SACK_AGENT])),
    ]
}

/// Cells of a variant.
pub(super) fn cells<'a>(records: &'a Records, variant: &'static Variant) -> Cells<'a> {
    Cells {
        records,
        ends: (variant.key, variant.base.name),
        service: &AUTHOR,
        segment: variant.change.segment,
        late: LATE,
    }
}

/// Position of the data packet with `count` data packets behind it.
pub(super) fn behind(cells: &Cells<'_>, count: u32) -> u32 {
    AUTHOR.last_data(cells.segment) - count
}

/// Drops of the data packets with these numbers of data packets behind them.
pub(super) fn drops(cells: &Cells<'_>, lost: &[u32]) -> PlannedDrops {
    let position = |index: usize| lost.get(index).map_or(0, |count| behind(cells, *count));
    PlannedDrops::At([position(0), position(1)])
}

/// Response time by the distance of the loss from the end, on one line.
fn by_position(records: &Records, line: NetworkLine) -> Chart {
    let shown = [
        (&OLD, NOTHING),
        (&FIN, NO_SACK),
        (&FIN, SMALL),
        (&FIN, NOTHING),
        (&DEFAULT, NOTHING),
    ];
    let x = Axis::linear(
        "the lost packet of data, counted from the last one",
        Unit::Count,
    );
    let title = format!("Author: {} kbit/s, {} ms", line.kbit, line.ms);
    let mut chart = Chart::new(title, x, Axis::linear("response time", Unit::Millis));
    chart.series = shown
        .iter()
        .map(|(base, change)| {
            let variant = variant_of(base, change);
            let cells = cells(records, variant);
            let points = (0..=FARTHEST).rev().filter_map(|count| {
                let row = cells.row(line, PlannedDrops::one(behind(&cells, count)))?;
                let mut point = Point::new(-f64::from(count), row.number("median_ms"))
                    .with_interval(row.number("low_ms"), row.number("high_ms"));
                let [timed_out, all] = ["timed_out", "transactions"].map(|name| row.number(name));
                point.hint = format!("{timed_out} of {all} transactions with a timeout");
                Some(point)
            });
            Series::line(variant.name(), points)
        })
        .collect();
    let none = cells(records, variant_of(&DEFAULT, &NOTHING)).ms(line, 0);
    chart.marks.push(Mark {
        along: Along::Y,
        at: none,
        label: format!("today, no loss: {none:.0} ms"),
        role: Role::Ours,
    });
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// Lower quartile, median and upper quartile of sorted values.
pub(super) fn quartiles(sorted: &[f64]) -> [f64; 3] {
    [0.25, 0.5, 0.75].map(|share| quantile(sorted, share))
}

/// Bar of the median of percentages over all lines, with a whisker between the quartiles. Rounded to whole percents,
/// because the lines are few.
fn over_lines(name: &str, percents: &[f64]) -> Bar {
    let [low, median, high] = quartiles(percents).map(|percent| percent / 100.0);
    Bar {
        label: String::new(),
        parts: vec![(name.to_owned(), (100.0 * median).round() / 100.0)],
        interval: Some((low, high)),
        ..Bar::default()
    }
}

fn distribution(title: &str, records: &Records, groups: Vec<Group>) -> Bars {
    let lines = cells(records, variant_of(&OLD, &NOTHING)).on_all_lines(Cells::increase);
    Bars {
        title: title.to_owned(),
        value: Axis::linear("increase over a loss in the middle", Unit::Share),
        groups,
        notes: vec![format!(
            "Medians of {} lines; whiskers reach from quartile to quartile. A loss in the middle has five packets of data behind it.",
            lines.len()
        )],
    }
}

/// Each remedy with both kernels.
fn remedies(records: &Records) -> Bars {
    let group = |change: SetupChange| Group {
        label: change.name.to_owned(),
        bars: [&OLD, &FIN]
            .map(|base| {
                let cells = cells(records, variant_of(base, &change));
                over_lines(base.name, &cells.on_all_lines(Cells::increase))
            })
            .into(),
    };
    let groups = REMEDIES.map(group).into();
    distribution("A loss among the last three, by remedy", records, groups)
}

/// Increase of the response time of a loss of the last data packet over one in the middle, in percent.
pub(super) fn last_alone(cells: &Cells<'_>, line: NetworkLine) -> f64 {
    let middle = AUTHOR.reference(cells.segment);
    100.0 * (cells.ms(line, behind(cells, 0)) / cells.ms(line, middle) - 1.0)
}

/// Contributions of today's kernel features.
fn taken_apart(records: &Records) -> Bars {
    let group = |(label, variant): (&str, &'static Variant)| {
        let cells = cells(records, variant);
        let late = cells.on_all_lines(Cells::increase);
        let last = cells.on_all_lines(last_alone);
        Group {
            label: label.to_owned(),
            bars: vec![
                over_lines("one of the last three", &late),
                over_lines("the last alone", &last),
            ],
        }
    };
    let with_fin = TAKEN_APART.map(|change| match change.name {
        name if name == NOTHING.name => ("FIN on the data", variant_of(&FIN, &change)),
        name => (name, variant_of(&FIN, &change)),
    });
    let groups = [("FIN apart, the default", variant_of(&DEFAULT, &NOTHING))]
        .into_iter()
        .chain(with_fin)
        .map(group)
        .collect();
    let mut bars = distribution("Today's kernel taken apart", records, groups);
    bars.notes
        .push("All but the first with the FIN on the data.".to_owned());
    bars
}

/// One and two losses at the end, without and with the agent.
fn agent(records: &Records, base: &'static Base, changes: [SetupChange; 2]) -> Bars {
    let line = SHOWN[0];
    let one: [&[u32]; 4] = [&[3], &[2], &[1], &[0]];
    let group = |lost: &[u32]| {
        let bar = |(name, change): (&str, &SetupChange)| {
            let cells = cells(records, variant_of(base, change));
            let row = cells.row(line, drops(&cells, lost));
            let number = |name| row.map_or(f64::NAN, |row| row.number(name));
            Bar {
                label: String::new(),
                parts: vec![(name.to_owned(), number("median_ms").round())],
                interval: Some((number("low_ms"), number("high_ms"))),
                ..Bar::default()
            }
        };
        let positions = lost.iter().map(|count| AUTHOR.last_data(SEGMENT) - count);
        let positions: Vec<String> = positions.map(|position| position.to_string()).collect();
        Group {
            label: positions.join(" and "),
            bars: ["without the agent", "with the agent"]
                .into_iter()
                .zip(&changes)
                .map(bar)
                .collect(),
        }
    };
    let pairs = PAIRS.iter().map(|pair| pair.as_slice());
    let of_what = variant_of(base, &changes[0]).name();
    Bars {
        title: format!("{of_what}: {} kbit/s, {} ms", line.kbit, line.ms),
        value: Axis::linear("response time", Unit::Millis),
        groups: one.into_iter().chain(pairs).map(group).collect(),
        notes: vec![
            "By the positions that are lost; 11 is the last data.".to_owned(),
            MEDIANS.to_owned(),
        ],
    }
}

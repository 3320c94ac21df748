//! Drawing of a chart: from series to shapes, in drawing order.
//!
//! The paper's series are below ours. Every series is a group with a colour class, so that a script can hide it.
//! Nothing has an id, so that charts can share a page.

use maud::{Markup, html};

use crate::area::Area;
use crate::chart::{Along, Chart, Role, Series, Shape};
use crate::frame::{self, Anchor, Foot, Format, Key, SAMPLE, text};
use crate::layer::{MARKERS, Marker, PixelPosition, layer, tenth};
use crate::marks::Marks;
use crate::palette;
use crate::trace::{self, Placed, Trace};

impl Chart {
    /// Renders a self-contained SVG file.
    pub fn svg(&self) -> String {
        self.svg_in(Format::Wide)
    }

    /// Renders a self-contained SVG file of this size.
    pub fn svg_in(&self, format: Format) -> String {
        draw(self, format, true).into_string()
    }

    /// Renders the chart for a page that contains [`chart_style`](crate::chart_style) once.
    pub fn inline(&self) -> Markup {
        self.inline_in(Format::Wide)
    }

    /// The same in another size.
    pub fn inline_in(&self, format: Format) -> Markup {
        draw(self, format, false)
    }

    /// Series and their ranges as text, for readers who cannot see the chart.
    pub fn description(&self) -> String {
        describe(self)
    }
}

/// Dashes of lines without markers, in tenths of a pixel. The first is solid.
const DASHES: [&str; 5] = ["none", "90 40", "20 30", "90 30 20 30", "50 20"];
/// Dashes of the paper's lines.
const PAPER_DASHES: [&str; 5] = ["50 40", "20 40", "70 30 20 30", "100 50", "30 20"];

/// Style of one series.
struct SeriesStyle {
    hue: usize,
    /// Colour class.
    colour: String,
    marker: Marker,
    marked: bool,
    banded: bool,
    role: Role,
    shape: Shape,
}

impl SeriesStyle {
    fn hollow(&self) -> bool {
        self.role == Role::Paper
    }

    fn dash(&self) -> &'static str {
        let dashes = if self.hollow() {
            &PAPER_DASHES
        } else {
            &DASHES
        };
        if self.marked {
            dashes[0]
        } else {
            dashes[self.hue % dashes.len()]
        }
    }

    fn width(&self) -> f64 {
        if self.hollow() { 1.5 } else { 2.0 }
    }
}

/// Renders the chart as SVG. A standalone one includes its style sheet and size.
fn draw(chart: &Chart, format: Format, standalone: bool) -> Markup {
    let traces: Vec<Trace<'_>> = chart
        .series
        .iter()
        .map(|series| Trace::new(chart, series))
        .collect();
    let looks = looks(chart, &traces);
    let area = Area::new(chart, &traces, format);
    let above = area.above(chart);
    let marks = Marks::new(chart, &area, &traces);
    let body = html! {
        (area.frame.rows(&area.y, |tick| area.position(area.x.coord.low, tick).1))
        (area.frame.columns(&area.x.ticks, |tick| area.position(tick, area.y.coord.low).0, false))
        @if let Some(above) = &above {
            (area.frame.columns(&above.ticks, |tick| area.position(tick, area.y.coord.low).0, true))
        }
        (marks.lines())
        @for role in [Role::Paper, Role::Ours] {
            @for index in (0..traces.len()).filter(|index| looks[*index].role == role) {
                (draw_series(&area, &traces[index], &looks[index], index))
            }
        }
        @if traces.iter().all(|trace| trace.runs.is_empty()) {
            @let middle = f64::midpoint(area.frame.left, area.frame.right);
            @let height = f64::midpoint(area.frame.top, area.frame.bottom);
            (text((middle, height), "ph-quiet", Anchor::Middle, "no data"))
        }
        @if format != Format::Small { (marks.labels()) }
        @for (index, trace) in traces.iter().enumerate() {
            (draw_hits(chart, &area, &chart.series[index], trace, index))
        }
    };
    let foot = Foot {
        room: 22.0,
        x_label: chart.x.label.clone(),
        keys: keys(chart, &looks),
        notes: match format {
            Format::Small => Vec::new(),
            _ => notes(chart, &area, &traces),
        },
    };
    let description = describe(chart);
    frame::assemble(
        &area.frame,
        &chart.title,
        &description,
        &body,
        foot,
        standalone,
    )
}

/// Styles of the series. Series of the same name share hue and marker.
fn looks(chart: &Chart, traces: &[Trace<'_>]) -> Vec<SeriesStyle> {
    let mut names: Vec<&str> = Vec::new();
    for series in &chart.series {
        if !names.contains(&&*series.name) {
            names.push(&series.name);
        }
    }
    let look = |(series, trace): (&Series, &Trace<'_>)| {
        let known = names.iter().position(|name| *name == series.name);
        let hue = known.expect("every series has given its name");
        SeriesStyle {
            hue,
            colour: if chart.ordered {
                palette::step(hue, names.len())
            } else {
                palette::class(hue, series.role == Role::Paper)
            },
            marker: MARKERS[hue % MARKERS.len()],
            marked: trace.marked(series.shape),
            banded: trace.banded(series.shape),
            role: series.role,
            shape: series.shape,
        }
    };
    chart.series.iter().zip(traces).map(look).collect()
}

fn draw_series(area: &Area, trace: &Trace<'_>, look: &SeriesStyle, index: usize) -> Markup {
    let lines: Vec<Vec<PixelPosition>> = trace
        .runs
        .iter()
        .map(|run| joined(area, run, look))
        .collect();
    let dots: Vec<PixelPosition> = trace
        .points()
        .filter(|placed| look.marked && area.shows(placed))
        .map(|placed| area.position(placed.x, placed.y))
        .collect();
    let lone = look.shape != Shape::Points && !look.marked;
    let covered = html! {
        @if look.banded {
            g class="ph-band" { (layer(|pen| {
                for run in &trace.runs {
                    pen.fill(&band(area, run));
                }
            })) }
        } @else {
            g class="ph-whisker" { (layer(|pen| {
                for (low, high) in whiskers(area, trace) {
                    pen.line(&[low, high], 1.4);
                    for end in [low, high] {
                        pen.line(&[(end.0 - 3.5, end.1), (end.0 + 3.5, end.1)], 1.4);
                    }
                }
            })) }
        }
        g class="ph-trace" stroke-dasharray=(look.dash()) { (layer(|pen| {
            for line in lines.iter().filter(|line| line.len() > 1) {
                pen.line(line, look.width());
            }
        })) }
    };
    html! {
        g class=(format!("ph-series {}", look.colour)) data-series=(index) {
            (area.frame.clipped(&covered))
            (layer(|pen| {
                for at in trace::seen(&dots, false) {
                    pen.marker(look.marker, dots[at], look.hollow());
                }
                // A run of one point has no line that would show it.
                for run in trace.runs.iter().filter(|run| lone && run.len() == 1) {
                    if area.shows(&run[0]) {
                        pen.marker(look.marker, area.position(run[0].x, run[0].y), look.hollow());
                    }
                }
            }))
        }
    }
}

/// Ends of the intervals of as many points as can be distinguished.
fn whiskers(area: &Area, trace: &Trace<'_>) -> Vec<(PixelPosition, PixelPosition)> {
    let ends: Vec<(PixelPosition, PixelPosition)> =
        trace.points().filter_map(|p| area.ends(p)).collect();
    let upper: Vec<PixelPosition> = ends.iter().map(|(_, high)| *high).collect();
    let seen = trace::seen(&upper, true).into_iter();
    seen.map(|index| ends[index]).collect()
}

/// Line of one run as drawn; empty if points are not connected.
fn joined(area: &Area, run: &[Placed<'_>], look: &SeriesStyle) -> Vec<PixelPosition> {
    let places = area.places(run);
    match look.shape {
        Shape::Points => Vec::new(),
        Shape::Line => trace::thin_line(&places),
        Shape::Steps => trace::thin_line(&trace::steps(&places)),
    }
}

/// Outline of the intervals along a run: forward along the upper ends, back along the lower ends.
fn band(area: &Area, run: &[Placed<'_>]) -> Vec<PixelPosition> {
    let ends: Vec<(PixelPosition, PixelPosition)> =
        run.iter().filter_map(|placed| area.ends(placed)).collect();
    let upper: Vec<PixelPosition> = ends.iter().map(|(_, high)| *high).collect();
    let lower: Vec<PixelPosition> = ends.iter().rev().map(|(low, _)| *low).collect();
    [trace::thin_line(&upper), trace::thin_line(&lower)].concat()
}

/// Invisible targets over the points, with the exact numbers as tooltips.
fn draw_hits(
    chart: &Chart,
    area: &Area,
    series: &Series,
    trace: &Trace<'_>,
    index: usize,
) -> Markup {
    let shown: Vec<&Placed<'_>> = trace.points().filter(|placed| area.shows(placed)).collect();
    let places: Vec<PixelPosition> = shown.iter().map(|p| area.position(p.x, p.y)).collect();
    html! {
        g class="ph-series" data-series=(index) {
            @for at in trace::seen(&places, true) {
                circle class="ph-hit" cx=(tenth(places[at].0)) cy=(tenth(places[at].1)) r="8" {
                    title { (tooltip(chart, series, shown[at])) }
                }
            }
        }
    }
}

fn tooltip(chart: &Chart, series: &Series, placed: &Placed<'_>) -> String {
    let point = placed.point;
    let interval = point.interval.filter(|_| placed.interval.is_some());
    let interval = interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", chart.y.exact(low), chart.y.exact(high))
    });
    let lines = [
        series.legend(),
        format!("{}: {}", chart.x.label, chart.x.exact(point.x)),
        format!("{}: {}{interval}", chart.y.label, chart.y.exact(point.y)),
        point.hint.clone(),
    ];
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn keys(chart: &Chart, looks: &[SeriesStyle]) -> Vec<Key> {
    let named = chart.series.iter().zip(looks).enumerate();
    named
        .filter(|(_, (series, _))| !series.legend().is_empty())
        .map(|(index, (series, look))| Key {
            series: index,
            label: series.legend(),
            sample: sample(look),
        })
        .collect()
}

/// Short sample of a series for the legend, around the origin.
fn sample(look: &SeriesStyle) -> Markup {
    let half = SAMPLE / 2.0;
    html! {
        g class=(look.colour) {
            @if look.shape != Shape::Points {
                g stroke-dasharray=(look.dash()) {
                    (layer(|pen| pen.line(&[(-half, 0.0), (half, 0.0)], look.width())))
                }
            }
            @if look.marked {
                (layer(|pen| pen.marker(look.marker, (0.0, 0.0), look.hollow())))
            }
        }
    }
}

/// Notes of the chart, and the numbers of omitted points.
fn notes(chart: &Chart, area: &Area, traces: &[Trace<'_>]) -> Vec<String> {
    let lost: usize = traces.iter().map(|trace| trace.lost).sum();
    let beyond = traces
        .iter()
        .flat_map(Trace::points)
        .filter(|placed| !area.shows(placed))
        .count();
    let mut notes = chart.notes.clone();
    if lost > 0 {
        notes.push(format!(
            "{lost} {} omitted: not a number, or without a position on the axis.",
            points(lost)
        ));
    }
    if beyond > 0 {
        notes.push(format!("{beyond} {} beyond the axes.", points(beyond)));
    }
    notes
}

fn points(count: usize) -> &'static str {
    if count == 1 { "point" } else { "points" }
}

/// Description for readers who cannot see the chart.
fn describe(chart: &Chart) -> String {
    let mut description = format!("{} against {}.", chart.y.label, chart.x.label);
    for series in &chart.series {
        let ys = series
            .points
            .iter()
            .map(|point| point.y)
            .filter(|y| chart.y.position(*y).is_some());
        let (low, high) = ys.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| {
            (low.min(y), high.max(y))
        });
        let count = series.points.len();
        description += &format!(" {}: {count} {}", series.legend(), points(count));
        if low <= high {
            description += &format!(", {} to {}", chart.y.exact(low), chart.y.exact(high));
        }
        description.push('.');
    }
    for mark in &chart.marks {
        let axis = if mark.along == Along::X {
            &chart.x
        } else {
            &chart.y
        };
        if axis.position(mark.at).is_some() {
            description += &format!(" {} at {}.", mark.label, axis.exact(mark.at));
        }
    }
    description
}

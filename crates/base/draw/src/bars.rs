//! Bar charts: groups of bars, each a stack of parts.
//!
//! Parts differ by hue and fill (solid, hatched, tinted), so they are distinguishable in black and white. Bars start at
//! zero, whatever scale their axis has, because their length is the amount.

use maud::{Markup, html};
use plotters::coord::ranged1d::Ranged;

use crate::axis::{Axis, Fitted, Scale};
use crate::chart::Role;
use crate::frame::{self, Anchor, Foot, Format, Frame, Key, text};
use crate::layer::{Pen, PixelPosition, UNITS, layer, tenth, text_width, wrap};
use crate::palette;
use crate::table::{Cell, Table};

/// Minimum distance between lines of text.
const LINE: f64 = 13.0;

/// A bar chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// Title. Screen readers announce it first.
    pub title: String,
    /// Quantity of the bars. The axis is always linear and from zero.
    pub value: Axis,
    /// Groups from left to right.
    pub groups: Vec<Group>,
    /// Notes below the legend.
    pub notes: Vec<String>,
}

/// A group of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Label of the group.
    pub label: String,
    /// Bars from left to right.
    pub bars: Vec<Bar>,
}

/// One bar: a stack of parts from the bottom up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Label below the bar: "ours".
    pub label: String,
    /// Source of the numbers.
    pub role: Role,
    /// Name and amount of each part. Amounts below zero are omitted and counted.
    pub parts: Vec<(String, f64)>,
    /// Lower and upper end of the interval of the total.
    pub interval: Option<(f64, f64)>,
}

impl Bar {
    /// Creates a bar with one part of the same name.
    pub fn single(label: impl Into<String>, value: f64) -> Self {
        let label = label.into();
        Self {
            parts: vec![(label.clone(), value)],
            label,
            ..Self::default()
        }
    }

    /// Parts that can be drawn: name and amount.
    fn drawn(&self) -> impl Iterator<Item = (&str, f64)> {
        let usable = |(_, value): &&(String, f64)| drawable(*value);
        self.parts
            .iter()
            .filter(usable)
            .map(|(name, value)| (&**name, *value))
    }

    fn total(&self) -> f64 {
        self.drawn().map(|(_, value)| value).sum()
    }
}

fn drawable(value: f64) -> bool {
    value == 0.0 || (1e-150..1e150).contains(&value)
}

/// Position of one bar: its edges in pixels.
struct Slot<'a> {
    bar: &'a Bar,
    /// True if the bar is longer than the axis.
    cut: bool,
    left: f64,
    right: f64,
}

impl Bars {
    /// Renders a self-contained SVG file.
    pub fn svg(&self) -> String {
        self.svg_in(Format::Wide)
    }

    /// Renders a self-contained SVG file of this size.
    pub fn svg_in(&self, format: Format) -> String {
        self.draw(format, true).into_string()
    }

    /// Renders the chart for a page that contains [`chart_style`](crate::chart_style) once.
    pub fn inline(&self) -> Markup {
        self.inline_in(Format::Wide)
    }

    /// The same in another size.
    pub fn inline_in(&self, format: Format) -> Markup {
        self.draw(format, false)
    }

    /// The chart's numbers, exactly as given.
    pub fn numbers(&self) -> Table {
        let mut table = Table::new(["group", "bar", "part", &*self.value.label]);
        for group in &self.groups {
            for bar in &group.bars {
                for (part, value) in &bar.parts {
                    table.rows.push(vec![
                        Cell::text(&*group.label),
                        Cell::text(&*bar.label),
                        Cell::text(&**part),
                        Cell::number(self.value.exact(*value)),
                    ]);
                }
            }
        }
        table
    }

    fn draw(&self, format: Format, standalone: bool) -> Markup {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        // The axis also covers the intervals, and ends at a tick.
        let ends = |bar: &Bar| {
            let (low, high) = bar.interval.unwrap_or((0.0, 0.0));
            [bar.total(), low, high]
                .into_iter()
                .filter(|end| drawable(*end))
        };
        let axis = Axis {
            scale: Scale::Linear,
            ..self.value.clone()
        };
        let y = axis.fit(bars().flat_map(ends).chain([0.0]), format.ticks().1);
        let frame = Frame::new(format, &self.title, &self.value.label, &[], &y, None);
        // A bar that is longer than the axis ends with the axis.
        let height = |value: f64| {
            let height = f64::from(y.coord.map(&value, frame.limits().1)) / UNITS;
            height.max(frame.top)
        };
        let names = self.part_names();
        let slots = self.slots(&frame, &y);
        let (labels, room) = self.labels(&frame, &slots);
        let body = html! {
            (frame.rows(&y, height))
            @for slot in slots.iter().flatten() {
                (draw_bar(&axis, slot, &names, &height))
            }
            (labels)
        };
        let foot = Foot {
            room,
            x_label: String::new(),
            keys: keys(&names),
            notes: match format {
                Format::Small => Vec::new(),
                _ => self.notes(&y),
            },
        };
        frame::assemble(
            &frame,
            &self.title,
            &self.description(),
            &body,
            foot,
            standalone,
        )
    }

    /// Names of parts, in the order of their first appearance.
    fn part_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        for (name, _) in bars.flat_map(|bar| &bar.parts) {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
        names
    }

    /// Position of each bar, by group.
    fn slots(&self, frame: &Frame, y: &Fitted) -> Vec<Vec<Slot<'_>>> {
        let room = (frame.right - frame.left) / self.groups.len().max(1) as f64;
        let group = |(index, group): (usize, &'_ Group)| {
            let count = group.bars.len().max(1) as f64;
            let step = (room * 0.84 / count).min(92.0);
            let start = frame.left + room * (index as f64 + 0.5) - step * count / 2.0;
            let lefts = (0..).map(move |index: u32| start + step * (f64::from(index) + 0.09));
            (lefts, step * 0.82)
        };
        self.groups
            .iter()
            .enumerate()
            .map(|(index, bars)| {
                let (lefts, width) = group((index, bars));
                let bars = bars.bars.iter().zip(lefts);
                bars.map(|(bar, left)| Slot {
                    bar,
                    cut: !y.coord.shows(bar.total()),
                    left,
                    right: left + width,
                })
                .collect()
            })
            .collect()
    }

    /// Labels below the bars and groups, and their height.
    fn labels(&self, frame: &Frame, slots: &[Vec<Slot<'_>>]) -> (Markup, f64) {
        let room = (frame.right - frame.left) / self.groups.len().max(1) as f64;
        let mut labels = Vec::new();
        let mut deepest = 22.0f64;
        let mut set = |middle: f64, from: f64, width: f64, class: &str, label: &str| {
            let mut below = from;
            for line in wrap(label, 12.0, width).into_iter().take(3) {
                if text_width(&line, 12.0) <= width * 1.3 {
                    labels.push(text(
                        (middle, frame.bottom + below),
                        class,
                        Anchor::Middle,
                        &line,
                    ));
                }
                below += 15.0;
            }
            deepest = deepest.max(below - 12.0);
            below
        };
        let mut next = 18.0f64;
        let beneath = slots.iter().flatten();
        let spared = self.repeats_its_legend(slots);
        for slot in beneath.filter(|_| !spared) {
            let middle = f64::midpoint(slot.left, slot.right);
            let width = slot.right - slot.left + 8.0;
            next = next.max(set(middle, 18.0, width, "ph-quiet", &slot.bar.label));
        }
        let middle = |index: usize| frame.left + room * (index as f64 + 0.5);
        let fits = |group: &Group| {
            let mut lines = wrap(&group.label, 12.0, room - 8.0).into_iter();
            lines.all(|line| text_width(&line, 12.0) <= room * 1.05)
        };
        if self.groups.iter().all(fits) {
            for (index, group) in self.groups.iter().enumerate() {
                set(
                    middle(index),
                    next + 3.0,
                    room - 8.0,
                    "ph-text",
                    &group.label,
                );
            }
        } else if room >= LINE {
            for (index, group) in self.groups.iter().enumerate() {
                let top = frame.bottom + next - 8.0;
                labels.push(upwards((middle(index) + 4.0, top), &group.label));
                deepest = deepest.max(next - 8.0 + text_width(&group.label, 12.0));
            }
        }
        (html! { @for label in labels { (label) } }, deepest)
    }

    /// Returns true if the bars' labels do not fit and only repeat the legend.
    fn repeats_its_legend(&self, slots: &[Vec<Slot<'_>>]) -> bool {
        let names = self.part_names();
        let is_known = |slot: &Slot<'_>| names.len() > 1 && names.contains(&&*slot.bar.label);
        let crowded =
            |slot: &Slot<'_>| text_width(&slot.bar.label, 12.0) > slot.right - slot.left + 8.0;
        slots.iter().flatten().any(crowded) && slots.iter().flatten().all(is_known)
    }

    fn notes(&self, y: &Fitted) -> Vec<String> {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let lost = bars()
            .flat_map(|bar| &bar.parts)
            .filter(|(_, value)| !drawable(*value))
            .count();
        let beyond = self.groups.iter().flat_map(|group| {
            let longer = group.bars.iter().filter(|bar| !y.coord.shows(bar.total()));
            longer.map(|bar| {
                format!("{} {}", group.label, bar.label).trim().to_owned()
                    + ", "
                    + &self.value.exact(bar.total())
            })
        });
        let beyond: Vec<String> = beyond.collect();
        let mut notes = self.notes.clone();
        if lost > 0 {
            notes.push(format!("Omitted, not a number or below zero: {lost}."));
        }
        if !beyond.is_empty() {
            notes.push(format!(
                "Cut at the end of the axis: {}.",
                beyond.join("; ")
            ));
        }
        notes
    }

    /// Totals of all bars as text, for readers who cannot see the chart.
    pub fn description(&self) -> String {
        let mut description = format!("{}.", self.value.label);
        for group in &self.groups {
            for bar in &group.bars {
                let total = self.value.exact(bar.total());
                description += &format!(" {} {}: {total}.", group.label, bar.label);
            }
        }
        description
    }
}

/// Vertical text, read upwards, that ends at `end`.
fn upwards(end: PixelPosition, content: &str) -> Markup {
    let turned = format!("translate({} {}) rotate(-90)", tenth(end.0), tenth(end.1));
    html! { text class="ph-text" transform=(turned) text-anchor="end" { (content) } }
}

/// One bar with its parts, interval, total and tooltips.
fn draw_bar(axis: &Axis, slot: &Slot<'_>, names: &[&str], height: &impl Fn(f64) -> f64) -> Markup {
    let bar = slot.bar;
    let muted = bar.role == Role::Paper;
    let mut below = 0.0;
    let mut parts = Vec::new();
    for (name, value) in bar.drawn() {
        let kind = names.iter().position(|known| *known == name).unwrap_or(0);
        let (floor, ceiling) = (height(below), height(below + value));
        below += value;
        let rectangle = ((slot.left, ceiling), (slot.right, floor));
        let hint = format!("{name}: {}", axis.exact(value));
        parts.push((kind, rectangle, hint));
    }
    let middle = f64::midpoint(slot.left, slot.right);
    let ends = bar
        .interval
        .filter(|(low, high)| drawable(*low) && drawable(*high));
    let top = ends.map_or(below, |(_, high)| high.max(below));
    let total = axis.exact(bar.total());
    let fits = text_width(&total, 12.0) <= (slot.right - slot.left) * 1.3;
    html! {
        @for (kind, (upper, lower), hint) in &parts {
            g class=(palette::class(*kind, muted)) {
                (filling(*kind, *upper, *lower, muted))
                rect class="ph-hit" x=(tenth(upper.0)) y=(tenth(upper.1))
                    width=(tenth(lower.0 - upper.0)) height=(tenth(lower.1 - upper.1)) {
                    title { (bar.label) " " (hint) }
                }
            }
        }
        @if let Some((low, high)) = ends {
            g class=(palette::class(palette::HUES - 1, false)) { (layer(|pen| {
                pen.line(&[(middle, height(low)), (middle, height(high))], 1.6);
                for end in [low, high] {
                    pen.line(&[(middle - 5.0, height(end)), (middle + 5.0, height(end))], 1.6);
                }
            })) }
        }
        @if slot.cut {
            (broken(slot, height(below)))
        }
        @if fits {
            (text((middle, height(top) - 6.0), "ph-text ph-halo", Anchor::Middle, &total))
        }
    }
}

/// Break mark across a bar that is cut: a gap with two slanted edges.
fn broken(slot: &Slot<'_>, top: f64) -> Markup {
    let (left, right) = (slot.left - 3.0, slot.right + 3.0);
    let (upper, lower) = (top + 10.0, top + 16.0);
    let gap = [
        (left, upper + 4.0),
        (right, upper - 4.0),
        (right, lower - 4.0),
        (left, lower + 4.0),
    ];
    let edges = [[gap[0], gap[1]], [gap[3], gap[2]]];
    html! {
        g class="ph-surface" { (layer(|pen| pen.fill(&gap))) }
        g class="ph-axis" { (layer(|pen| edges.iter().for_each(|edge| pen.line(edge, 1.4)))) }
    }
}

/// Fill of a part by its number: solid, hatched, tinted, cross-hatched, repeated. The paper's parts have dashed
/// outlines.
fn filling(kind: usize, upper: PixelPosition, lower: PixelPosition, muted: bool) -> Markup {
    let outline = [upper, (lower.0, upper.1), lower, (upper.0, lower.1), upper];
    html! {
        @if kind.is_multiple_of(4) {
            (layer(|pen| pen.rectangle(upper, lower)))
        } @else {
            g class="ph-tint" { (layer(|pen| pen.rectangle(upper, lower))) }
            (layer(|pen| {
                if kind % 2 == 1 {
                    hatch(pen, upper, lower, false);
                }
                if kind % 4 == 3 {
                    hatch(pen, upper, lower, true);
                }
            }))
        }
        g stroke-dasharray=[muted.then_some("50 40")] {
            (layer(|pen| pen.line(&outline, 1.4)))
        }
    }
}

/// Slanted lines from edge to edge, 7 pixels apart.
fn hatch(pen: &mut Pen<'_>, upper: PixelPosition, lower: PixelPosition, falling: bool) {
    let (width, height) = (lower.0 - upper.0, lower.1 - upper.1);
    let count = ((width + height) / 7.0).min(400.0) as u32;
    for index in 1..=count {
        let start = f64::from(index) * 7.0 - height;
        let (from, to) = (start.max(0.0), (start + height).min(width));
        let at = |across: f64| {
            let up = across - start;
            let y = if falling { upper.1 + up } else { lower.1 - up };
            (upper.0 + across, y)
        };
        if from < to {
            pen.line(&[at(from), at(to)], 1.2);
        }
    }
}

fn keys(names: &[&str]) -> Vec<Key> {
    if names.len() < 2 {
        return Vec::new();
    }
    let key = |(kind, name): (usize, &&str)| Key {
        series: kind,
        label: (*name).to_owned(),
        sample: html! {
            g class=(palette::class(kind, false)) { (filling(kind, (-14.0, -7.0), (14.0, 7.0), false)) }
        },
    };
    names.iter().enumerate().map(key).collect()
}

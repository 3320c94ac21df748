//! What stands around the data: title, axes, grid, legend and notes, and the room each takes.
//!
//! The same for every kind of chart. The legend stands beneath the axes, so that it can never
//! cover data; everything that is words is measured before it is placed.

use maud::{Markup, PreEscaped, html};

use crate::axis::Fitted;
use crate::ink;
use crate::layer::{Pen, Place, layer, tenth, text_width, wrap};

/// Width of every chart in pixels of its own; a page scales it.
pub(crate) const WIDTH: f64 = 720.0;
const PLOT_HEIGHT: f64 = 300.0;
const MARGIN: f64 = 16.0;
const TITLE: f64 = 15.0;
const WORDS: f64 = 12.0;

/// Which end of a text stands at its place.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of words at a baseline.
pub(crate) fn text(place: Place, class: &str, anchor: Anchor, words: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    html! {
        text class=(class) x=(tenth(place.0)) y=(tenth(place.1)) text-anchor=[anchor] { (words) }
    }
}

/// The ticks and the words of a second axis above.
pub(crate) struct Above {
    pub(crate) label: String,
    /// Places in x (on its scale), and labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// The edges of the area of data, and what is drawn around it.
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    head: Markup,
}

impl Frame {
    /// Room for `title`, for the ticks of x and the y axis with its label, and an axis above.
    pub(crate) fn new(
        title: &str,
        y_label: &str,
        (x, y): (&[(f64, String)], &Fitted),
        above: Option<&Above>,
    ) -> Self {
        let widest = |labels: &[(f64, String)]| {
            labels
                .iter()
                .map(|(_, label)| text_width(label, WORDS))
                .fold(0.0, f64::max)
        };
        let left = (MARGIN + widest(&y.ticks) + 8.0).max(44.0);
        let right = WIDTH - MARGIN - (widest(x) / 2.0).max(10.0);
        let (mut head, mut baseline) = heading(title, y_label);
        if let Some(above) = above {
            let both = text_width(y_label, WORDS) + text_width(&above.label, WORDS) + 24.0;
            if both > WIDTH - 2.0 * MARGIN {
                baseline += 18.0;
            }
            let place = (WIDTH - MARGIN, baseline);
            head.push(text(place, "ph-quiet", Anchor::End, &above.label));
            baseline += 20.0;
        }
        let top = baseline + if above.is_some() { 10.0 } else { 18.0 };
        Self {
            left,
            right,
            top,
            bottom: top + PLOT_HEIGHT,
            head: html! { @for line in head { (line) } },
        }
    }

    /// Room for `title`, for `words` beneath it, and for data as high as they are.
    pub(crate) fn without_axes(title: &str, words: &str, height: f64) -> Self {
        let (head, baseline) = heading(title, words);
        let top = baseline + 18.0;
        Self {
            left: MARGIN,
            right: WIDTH - MARGIN,
            top,
            bottom: top + height,
            head: html! { @for line in head { (line) } },
        }
    }

    /// The limits of x and of y in backend units, as plotters maps to them.
    pub(crate) fn limits(&self) -> ((i32, i32), (i32, i32)) {
        let units = |pixels: f64| (pixels * crate::layer::UNITS).round() as i32;
        (
            (units(self.left), units(self.right)),
            (units(self.bottom), units(self.top)),
        )
    }

    /// Whatever `inside` draws, cut off at the edges of the area of data.
    pub(crate) fn clipped(&self, inside: &Markup) -> Markup {
        let (x, y) = (self.left - 2.0, self.top - 2.0);
        let (width, height) = (self.right - x + 2.0, self.bottom - y + 2.0);
        let (x, y, width, height) = (tenth(x), tenth(y), tenth(width), tenth(height));
        html! {
            svg x=(x) y=(y) width=(width) height=(height)
                viewBox=(format!("{x} {y} {width} {height}")) { (inside) }
        }
    }

    /// The grid and the labels of the y axis; `at` maps a tick to its height on the page.
    pub(crate) fn rows(&self, y: &Fitted, at: impl Fn(f64) -> f64) -> Markup {
        let rows: Vec<(f64, &str)> = y.ticks.iter().map(|(v, l)| (at(*v), &**l)).collect();
        let across = |pen: &mut Pen<'_>, height: f64| {
            pen.line(&[(self.left, height), (self.right, height)], 1.0);
        };
        html! {
            g class="ph-grid" {
                (layer(|pen| rows.iter().for_each(|(height, _)| across(pen, *height))))
            }
            g class="ph-axis" { (layer(|pen| {
                across(pen, self.bottom);
                let zero = y.ticks.iter().find(|(value, _)| *value == 0.0);
                if let Some((value, _)) = zero {
                    across(pen, at(*value));
                }
            })) }
            @for (height, label) in rows {
                (text((self.left - 8.0, height + 4.0), "ph-quiet", Anchor::End, label))
            }
        }
    }

    /// The ticks of an x axis, beneath the data or above them, as many as have room.
    pub(crate) fn columns(
        &self,
        ticks: &[(f64, String)],
        at: impl Fn(f64) -> f64,
        above: bool,
    ) -> Markup {
        let (edge, outward, baseline) = if above {
            (self.top, -4.0, self.top - 10.0)
        } else {
            (self.bottom, 5.0, self.bottom + 20.0)
        };
        let mut free_from = f64::NEG_INFINITY;
        let shown: Vec<(f64, &str)> = ticks
            .iter()
            .map(|(value, label)| (at(*value), &**label))
            .filter(|(x, label)| {
                let half = text_width(label, WORDS) / 2.0 + 3.0;
                let fits = x - half >= free_from;
                if fits {
                    free_from = x + half;
                }
                fits
            })
            .collect();
        html! {
            g class="ph-axis" { (layer(|pen| {
                if above {
                    pen.line(&[(self.left, edge), (self.right, edge)], 1.0);
                }
                for (x, _) in &shown {
                    pen.line(&[(*x, edge), (*x, edge + outward)], 1.0);
                }
            })) }
            @for (x, label) in &shown {
                (text((*x, baseline), "ph-quiet", Anchor::Middle, label))
            }
        }
    }
}

/// The lines of a title and the quieter words beneath it, and the last baseline.
fn heading(title: &str, words: &str) -> (Vec<Markup>, f64) {
    let mut baseline = 8.0;
    let mut head = Vec::new();
    for line in wrap(title, TITLE * 1.25, WIDTH - 2.0 * MARGIN) {
        baseline += 20.0;
        head.push(text(
            (MARGIN, baseline),
            "ph-text ph-title",
            Anchor::Start,
            &line,
        ));
    }
    baseline += 22.0;
    head.push(text((MARGIN, baseline), "ph-quiet", Anchor::Start, words));
    (head, baseline)
}

/// One entry of a legend.
pub(crate) struct Key {
    /// The number of the series, by which a script finds it.
    pub(crate) series: usize,
    pub(crate) words: String,
    /// The sample, 30 pixels wide, drawn around a centre.
    pub(crate) sample: Markup,
}

/// Width of the sample of a legend entry.
pub(crate) const SAMPLE: f64 = 30.0;

/// What is beneath the data: the label of x, the legend and the notes.
pub(crate) struct Foot {
    /// Room for the labels of the ticks.
    pub(crate) room: f64,
    pub(crate) x_label: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) notes: Vec<String>,
}

/// The finished drawing: `body` within `frame`, above `foot`.
pub(crate) fn assemble(
    frame: &Frame,
    title: &str,
    description: &str,
    body: &Markup,
    foot: Foot,
    standalone: bool,
) -> Markup {
    let mut baseline = frame.bottom + foot.room;
    if !foot.x_label.is_empty() {
        baseline += 20.0;
    }
    let middle = f64::midpoint(frame.left, frame.right);
    let x_label = text(
        (middle, baseline),
        "ph-quiet",
        Anchor::Middle,
        &foot.x_label,
    );
    let legend = legend(foot.keys, &mut baseline);
    let notes = notes(&foot.notes, &mut baseline);
    let height = (baseline + 16.0).round();
    // A page has margins of its own.
    let edge = if standalone { 0.0 } else { MARGIN - 2.0 };
    let below = if standalone { 0.0 } else { 6.0 };
    let (across, down) = (WIDTH - 2.0 * edge, height - edge - below);
    let view = format!("{edge} {edge} {across} {down}");
    html! {
        svg class="ph-chart" xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(title)
            viewBox=(view)
            width=[standalone.then_some(WIDTH)] height=[standalone.then_some(height)] {
            title { (title) }
            desc { (description) }
            @if standalone { style { (PreEscaped(ink::chart_style())) } }
            rect class="ph-surface" width=(WIDTH) height=(height) rx="6" {}
            (frame.head)
            (body)
            (x_label) (legend) (notes)
        }
    }
}

/// Entries side by side, in as many rows as they need.
fn legend(keys: Vec<Key>, baseline: &mut f64) -> Markup {
    if keys.is_empty() {
        return html! {};
    }
    *baseline += 28.0;
    let mut x = MARGIN;
    let mut entries = Vec::new();
    for key in keys {
        let width = SAMPLE + 8.0 + text_width(&key.words, WORDS);
        if x > MARGIN && x + width > WIDTH - MARGIN {
            x = MARGIN;
            *baseline += 22.0;
        }
        let (cx, cy) = (tenth(x + SAMPLE / 2.0), tenth(*baseline - 4.0));
        let place = (x + SAMPLE + 8.0, *baseline);
        entries.push(html! {
            g class="ph-key" data-series=(key.series) {
                g transform=(format!("translate({cx} {cy})")) { (key.sample) }
                (text(place, "ph-text", Anchor::Start, &key.words))
            }
        });
        x += width + 22.0;
    }
    html! { @for entry in entries { (entry) } }
}

fn notes(notes: &[String], baseline: &mut f64) -> Markup {
    let lines: Vec<String> = notes
        .iter()
        .flat_map(|note| wrap(note, WORDS, WIDTH - 2.0 * MARGIN))
        .collect();
    if !lines.is_empty() {
        *baseline += 8.0;
    }
    let mut next = || {
        *baseline += 17.0;
        *baseline
    };
    html! {
        @for line in &lines { (text((MARGIN, next()), "ph-quiet", Anchor::Start, line)) }
    }
}

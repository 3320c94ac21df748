//! Frame around the data: title, axes, grid, legend and notes, and their layout.
//!
//! All kinds of charts use it. The legend is below the axes and so never covers data. All text is measured before it is
//! placed.

use maud::{Markup, PreEscaped, html};

use crate::axis::Fitted;
use crate::layer::{Pen, PixelPosition, layer, tenth, text_width, wrap};
use crate::palette;

const MARGIN: f64 = 16.0;
const TITLE: f64 = 15.0;
const WORDS: f64 = 12.0;

/// Size of a drawing. Text has the same size in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 720 pixels wide: a page on a screen, a file.
    #[default]
    Wide,
    /// 380 pixels wide: the whole drawing on a phone.
    Narrow,
    /// 300 pixels wide: axes, data and legend, without title, notes and labels of marks.
    Small,
}

impl Format {
    pub(crate) const fn width(self) -> f64 {
        match self {
            Self::Wide => 720.0,
            Self::Narrow => 380.0,
            Self::Small => 300.0,
        }
    }

    /// Height of the data area.
    fn height(self) -> f64 {
        match self {
            Self::Wide => 300.0,
            Self::Narrow => 260.0,
            Self::Small => 130.0,
        }
    }

    /// Maximum number of ticks along x and along y.
    pub(crate) fn ticks(self) -> (usize, usize) {
        match self {
            Self::Wide => (9, 7),
            Self::Narrow => (5, 7),
            Self::Small => (4, 4),
        }
    }

    /// Width between the margins.
    fn room(self) -> f64 {
        self.width() - 2.0 * MARGIN
    }
}

/// Alignment of a text: the point of it that is at its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text at a baseline.
pub(crate) fn text(position: PixelPosition, class: &str, anchor: Anchor, content: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    html! {
        text class=(class) x=(tenth(position.0)) y=(tenth(position.1)) text-anchor=[anchor] { (content) }
    }
}

/// Ticks and label of a top axis.
pub(crate) struct Above {
    pub(crate) label: String,
    /// Positions in x (on its scale), and labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Edges of the data area, and the heading above it.
pub(crate) struct Frame {
    pub(crate) format: Format,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    head: Markup,
}

impl Frame {
    /// Lays out `title`, the ticks of x, the y axis with its label, and a top axis.
    pub(crate) fn new(
        format: Format,
        title: &str,
        y_label: &str,
        x_ticks: &[(f64, String)],
        y: &Fitted,
        above: Option<&Above>,
    ) -> Self {
        let widest = |labels: &[(f64, String)]| {
            labels
                .iter()
                .map(|(_, label)| text_width(label, WORDS))
                .fold(0.0, f64::max)
        };
        let left = (MARGIN + widest(&y.ticks) + 8.0).max(44.0);
        let right = format.width() - MARGIN - (widest(x_ticks) / 2.0).max(10.0);
        let (mut head, mut baseline) = heading(format, title, y_label);
        if let Some(above) = above {
            let both = text_width(y_label, WORDS) + text_width(&above.label, WORDS) + 24.0;
            if both > format.room() {
                baseline += 18.0;
            }
            let position = (format.width() - MARGIN, baseline);
            head.push(text(position, "ph-quiet", Anchor::End, &above.label));
            baseline += 20.0;
        }
        let top = baseline + if above.is_some() { 10.0 } else { 18.0 };
        Self {
            format,
            left,
            right,
            top,
            bottom: top + format.height(),
            head: html! { @for line in head { (line) } },
        }
    }

    /// Lays out `title`, `subtitle` below it, and a data area of this height.
    pub(crate) fn without_axes(title: &str, subtitle: &str, height: f64) -> Self {
        let format = Format::Wide;
        let (head, baseline) = heading(format, title, subtitle);
        let top = baseline + 18.0;
        Self {
            format,
            left: MARGIN,
            right: format.width() - MARGIN,
            top,
            bottom: top + height,
            head: html! { @for line in head { (line) } },
        }
    }

    /// Limits of x and y in backend units, for plotters' mapping.
    pub(crate) fn limits(&self) -> ((i32, i32), (i32, i32)) {
        let units = |pixels: f64| (pixels * crate::layer::UNITS).round() as i32;
        (
            (units(self.left), units(self.right)),
            (units(self.bottom), units(self.top)),
        )
    }

    /// Clips `inside` at the edges of the data area.
    pub(crate) fn clipped(&self, inside: &Markup) -> Markup {
        let (x, y) = (self.left - 2.0, self.top - 2.0);
        let (width, height) = (self.right - x + 2.0, self.bottom - y + 2.0);
        let (x, y, width, height) = (tenth(x), tenth(y), tenth(width), tenth(height));
        html! {
            svg x=(x) y=(y) width=(width) height=(height)
                viewBox=(format!("{x} {y} {width} {height}")) { (inside) }
        }
    }

    /// Grid and labels of the y axis. `at` maps a tick to its height on the page.
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

    /// Ticks of an x axis, below or above the data. Labels that do not fit are omitted with their ticks.
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

/// Lines of the title and of the quieter text below it, and the last baseline.
fn heading(format: Format, title: &str, subtitle: &str) -> (Vec<Markup>, f64) {
    let mut baseline = 8.0;
    let mut head = Vec::new();
    let title = if format == Format::Small { "" } else { title };
    for line in wrap(title, TITLE * 1.25, format.room()) {
        baseline += 20.0;
        head.push(text(
            (MARGIN, baseline),
            "ph-text ph-title",
            Anchor::Start,
            &line,
        ));
    }
    baseline += 4.0;
    for line in wrap(subtitle, WORDS, format.room()) {
        baseline += 18.0;
        head.push(text((MARGIN, baseline), "ph-quiet", Anchor::Start, &line));
    }
    (head, baseline)
}

/// One entry of a legend.
pub(crate) struct Key {
    /// Number of the series, used by the script.
    pub(crate) series: usize,
    pub(crate) label: String,
    /// Sample, 30 pixels wide, drawn around a centre.
    pub(crate) sample: Markup,
}

/// Width of the sample of a legend entry.
pub(crate) const SAMPLE: f64 = 30.0;

/// Parts below the data: label of x, legend and notes.
pub(crate) struct Foot {
    /// Height of the tick labels.
    pub(crate) room: f64,
    pub(crate) x_label: String,
    pub(crate) keys: Vec<Key>,
    pub(crate) notes: Vec<String>,
}

/// Complete drawing: `body` within `frame`, above `foot`.
pub(crate) fn assemble(
    frame: &Frame,
    title: &str,
    description: &str,
    body: &Markup,
    foot: Foot,
    standalone: bool,
) -> Markup {
    let mut baseline = frame.bottom + foot.room;
    let x_label = x_label(frame, &foot.x_label, &mut baseline);
    let format = frame.format;
    let legend = legend(format, foot.keys, &mut baseline);
    let notes = notes(format, &foot.notes, &mut baseline);
    let height = (baseline + 16.0).round();
    // A page has margins of its own.
    let edge = if standalone { 0.0 } else { MARGIN - 2.0 };
    let below = if standalone { 0.0 } else { 6.0 };
    let width = format.width();
    let (across, down) = (width - 2.0 * edge, height - edge - below);
    let view = format!("{edge} {edge} {across} {down}");
    html! {
        svg class="ph-chart" xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(title)
            viewBox=(view)
            width=[standalone.then_some(width)] height=[standalone.then_some(height)] {
            title { (title) }
            desc { (description) }
            @if standalone { style { (PreEscaped(palette::chart_style())) } }
            rect class="ph-surface" width=(width) height=(height) rx="6" {}
            (frame.head)
            (body)
            (x_label) (legend) (notes)
        }
    }
}

/// Label of x, in as many lines as needed.
fn x_label(frame: &Frame, label: &str, baseline: &mut f64) -> Markup {
    let middle = f64::midpoint(frame.left, frame.right);
    // Centred below the data, within the margins.
    let half = (middle - MARGIN).min(frame.format.width() - MARGIN - middle);
    let lines = wrap(label, WORDS, 2.0 * half).into_iter();
    let mut set = |(index, line): (usize, String)| {
        *baseline += if index == 0 { 20.0 } else { 16.0 };
        text((middle, *baseline), "ph-quiet", Anchor::Middle, &line)
    };
    let lines: Vec<Markup> = lines.enumerate().map(&mut set).collect();
    html! { @for line in lines { (line) } }
}

/// Entries next to each other, in as many rows as needed.
fn legend(format: Format, keys: Vec<Key>, baseline: &mut f64) -> Markup {
    if keys.is_empty() {
        return html! {};
    }
    *baseline += 28.0;
    let mut x = MARGIN;
    let mut entries = Vec::new();
    for key in keys {
        let width = SAMPLE + 8.0 + text_width(&key.label, WORDS);
        if x > MARGIN && x + width > format.width() - MARGIN {
            x = MARGIN;
            *baseline += 22.0;
        }
        let (cx, cy) = (tenth(x + SAMPLE / 2.0), tenth(*baseline - 4.0));
        let position = (x + SAMPLE + 8.0, *baseline);
        entries.push(html! {
            g class="ph-key" data-series=(key.series) {
                g transform=(format!("translate({cx} {cy})")) { (key.sample) }
                (text(position, "ph-text", Anchor::Start, &key.label))
            }
        });
        x += width + 22.0;
    }
    html! { @for entry in entries { (entry) } }
}

fn notes(format: Format, notes: &[String], baseline: &mut f64) -> Markup {
    let lines: Vec<String> = notes
        .iter()
        .flat_map(|note| wrap(note, WORDS, format.room()))
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

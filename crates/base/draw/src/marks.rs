//! Reference lines and their labels, placed next to their line, clear of data and of each other.
//!
//! Lines are drawn below the data, labels above everything. Each label takes the position along its line that covers
//! least. The first mark chooses first, so the result depends on the data only.

use maud::{Markup, html};

use crate::area::Area;
use crate::chart::{Along, Chart, Mark, Role};
use crate::frame::{Anchor, Frame, text};
use crate::layer::{PixelPosition, layer, text_width};
use crate::palette;
use crate::trace::{self, Trace};

const SIZE: f64 = 12.0;
const ROW: f64 = 16.0;

/// Marks of a chart that lie between its axes.
pub(crate) struct Marks<'a> {
    frame: &'a Frame,
    lines: Vec<ReferenceLine<'a>>,
    labels: Vec<PixelPosition>,
}

impl<'a> Marks<'a> {
    /// Places the labels of `chart`'s marks where they cover the traces least.
    pub(crate) fn new(chart: &'a Chart, area: &'a Area, traces: &[Trace<'_>]) -> Self {
        let line = |mark: &'a Mark| {
            let at = match mark.along {
                Along::X => {
                    let at = chart
                        .x
                        .position(mark.at)
                        .filter(|at| area.x.coord.shows(*at))?;
                    area.position(at, area.y.coord.low).0
                }
                Along::Y => {
                    let at = chart
                        .y
                        .position(mark.at)
                        .filter(|at| area.y.coord.shows(*at))?;
                    area.position(area.x.coord.low, at).1
                }
            };
            Some(ReferenceLine { mark, at })
        };
        let lines: Vec<ReferenceLine<'a>> = chart.marks.iter().filter_map(line).collect();
        let data: Vec<PixelPosition> = traces
            .iter()
            .flat_map(|trace| &trace.runs)
            .flat_map(|run| along(&trace::thin_line(&area.places(run))))
            .collect();
        let labels = label_positions(&area.frame, &lines, &data);
        Self {
            frame: &area.frame,
            lines,
            labels,
        }
    }

    /// Lines, for the layer below the data.
    pub(crate) fn lines(&self) -> Markup {
        let Frame {
            left,
            right,
            top,
            bottom,
            ..
        } = *self.frame;
        html! {
            @for ReferenceLine { mark, at } in &self.lines {
                @let paper = mark.role == Role::Paper;
                g class=(palette::class(palette::HUES - 1, paper))
                    stroke-dasharray=(if paper { "20 30" } else { "60 30" }) {
                    (layer(|pen| match mark.along {
                        Along::X => pen.line(&[(*at, top), (*at, bottom)], 1.4),
                        Along::Y => pen.line(&[(left, *at), (right, *at)], 1.4),
                    }))
                }
            }
        }
    }

    /// Labels, for the layer above everything.
    pub(crate) fn labels(&self) -> Markup {
        html! {
            @for (line, position) in self.lines.iter().zip(&self.labels) {
                @let paper = line.mark.role == Role::Paper;
                @let class = if paper { "ph-quiet ph-halo" } else { "ph-text ph-halo" };
                (text(*position, class, Anchor::Start, &line.mark.label))
            }
        }
    }
}

/// A reference line on the page, in pixels.
struct ReferenceLine<'a> {
    mark: &'a Mark,
    at: f64,
}

/// A rectangle on the page.
#[derive(Clone, Copy)]
struct LabelArea {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LabelArea {
    fn around(baseline: PixelPosition, width: f64) -> Self {
        let (left, bottom) = (baseline.0, baseline.1 + 4.0);
        Self {
            left,
            right: left + width,
            top: bottom - ROW,
            bottom,
        }
    }

    fn holds(&self, position: PixelPosition) -> bool {
        let (x, y) = position;
        (self.left - 3.0..=self.right + 3.0).contains(&x)
            && (self.top - 2.0..=self.bottom + 2.0).contains(&y)
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right + 6.0
            && other.left < self.right + 6.0
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Returns true if `line` crosses the rectangle.
    fn crossed(&self, line: &ReferenceLine<'_>) -> bool {
        match line.mark.along {
            Along::X => (self.left - 2.0..=self.right + 2.0).contains(&line.at),
            Along::Y => (self.top..=self.bottom).contains(&line.at),
        }
    }
}

/// Left end of the baseline of each line's label. `data` are positions to avoid.
fn label_positions(
    frame: &Frame,
    lines: &[ReferenceLine<'_>],
    data: &[PixelPosition],
) -> Vec<PixelPosition> {
    let mut taken: Vec<LabelArea> = Vec::new();
    lines
        .iter()
        .map(|line| {
            let width = text_width(&line.mark.label, SIZE);
            let cost = |baseline: &PixelPosition, distance: usize| {
                let room = LabelArea::around(*baseline, width);
                let covered = data
                    .iter()
                    .filter(|position| room.holds(**position))
                    .count();
                let clashes = taken.iter().filter(|other| other.meets(&room)).count();
                let crossed = lines.iter().filter(|other| room.crossed(other)).count();
                covered * 20 + clashes * 5000 + crossed * 60 + distance
            };
            let best = candidates(frame, line, width)
                .into_iter()
                .enumerate()
                .min_by_key(|(distance, baseline)| cost(baseline, *distance))
                .map_or((frame.left + 4.0, frame.top + ROW), |(_, baseline)| {
                    baseline
                });
            taken.push(LabelArea::around(best, width));
            best
        })
        .collect()
}

/// Positions next to `line` in order of preference: the top of a vertical line, the right end of a horizontal one.
fn candidates(frame: &Frame, line: &ReferenceLine<'_>, width: f64) -> Vec<PixelPosition> {
    let fits = |x: f64| x >= frame.left + 2.0 && x + width <= frame.right + 4.0;
    match line.mark.along {
        Along::X => {
            let rows = ((frame.bottom - frame.top) / ROW) as usize;
            (0..rows)
                .flat_map(|row| {
                    let baseline = frame.top + ROW * (row as f64 + 0.9);
                    [(line.at + 6.0, baseline), (line.at - 6.0 - width, baseline)]
                })
                .filter(|(x, _)| fits(*x))
                .collect()
        }
        Along::Y => {
            let steps = ((frame.right - frame.left) / ROW) as usize;
            (0..steps)
                .flat_map(|step| {
                    let x = frame.right - width - ROW * step as f64;
                    [(x, line.at - 5.0), (x, line.at + 14.0)]
                })
                .filter(|(x, y)| fits(*x) && *y > frame.top + 8.0 && *y < frame.bottom - 2.0)
                .collect()
        }
    }
}

/// Positions along the polyline through `places`, dense enough for the test of labels.
fn along(places: &[PixelPosition]) -> Vec<PixelPosition> {
    let mut all = places.to_vec();
    for pair in places.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let parts = ((x1 - x0).abs().max((y1 - y0).abs()) / 8.0).min(200.0) as u32;
        all.extend((1..parts).map(|part| {
            let share = f64::from(part) / f64::from(parts);
            (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share)
        }));
    }
    all
}

//! SVG form of a ladder: styled by classes as all charts, without ids.

use maud::{Markup, html};

use super::rungs::{Folded, Rung, Rungs, lay_out};
use super::{Ladder, Line, Side, TimeFormat};
use crate::frame::{self, Anchor, Foot, Format, Frame, Key, SAMPLE, text};
use crate::layer::{Pen, PixelPosition, layer, tenth, text_width};
use crate::palette;

/// Position of the left end's line.
const LEFT: f64 = 250.0;
const WIDTH: f64 = Format::Wide.width();
const RIGHT: f64 = WIDTH - LEFT;
const MARGIN: f64 = 16.0;
const WORDS: f64 = 12.0;
/// Height of the ends' names.
const NAMES: f64 = 16.0;
/// Length of a lost packet's arrow, as a share of the full width.
const LOST: f64 = 0.6;
/// Minimum drop over the full width of a lost packet, in pixels. An immediate loss still looks like a packet.
const FALL: f64 = 7.0;

impl Side {
    fn x(self) -> f64 {
        match self {
            Self::Left => LEFT,
            Self::Right => RIGHT,
        }
    }

    /// Direction from this end's line away from the other end, as a sign.
    fn outward(self) -> f64 {
        match self {
            Self::Left => -1.0,
            Self::Right => 1.0,
        }
    }
}

impl Line {
    fn colour(self) -> String {
        match self {
            Self::Data => palette::class(0, false),
            Self::Acknowledgement => palette::class(5, true),
            Self::Control => palette::class(2, false),
            Self::Again => palette::class(1, false),
        }
    }

    fn width(self) -> f64 {
        match self {
            Self::Acknowledgement => 1.0,
            Self::Data | Self::Control => 1.6,
            Self::Again => 2.4,
        }
    }
}

/// Renders the ladder as SVG. A standalone one includes its style sheet and size.
pub(super) fn draw(ladder: &Ladder, standalone: bool) -> Markup {
    let (rungs, notes) = lay_out(ladder);
    let clock = TimeFormat::for_length(rungs.busy);
    let subtitle = "Milliseconds, downwards; idle stretches are folded.";
    let frame = Frame::without_axes(&ladder.title, subtitle, NAMES + rungs.height);
    let origin = frame.top + NAMES;
    let body = html! {
        (ends(ladder, &frame))
        g transform=(format!("translate(0 {})", tenth(origin))) {
            (lifelines(&rungs))
            (folded(ladder, &rungs))
            (waits(ladder, &rungs))
            @for (index, (line, _)) in Line::ALL.into_iter().enumerate() {
                g class="ph-series" data-series=(index) {
                    @for rung in rungs.rungs.iter().filter(|rung| rung.arrow.line == line) {
                        (draw_rung(rung, clock))
                    }
                }
            }
            (wait_labels(ladder, &rungs))
        }
    };
    let foot = Foot {
        room: 0.0,
        x_label: String::new(),
        keys: keys(ladder),
        notes,
    };
    let description = describe(ladder, &rungs, clock);
    frame::assemble(&frame, &ladder.title, &description, &body, foot, standalone)
}

fn ends(ladder: &Ladder, frame: &Frame) -> Markup {
    html! {
        @for (side, name) in [Side::Left, Side::Right].into_iter().zip(&ladder.ends) {
            (text((side.x(), frame.top + 4.0), "ph-text", Anchor::Middle, name))
        }
    }
}

/// Lines of the ends, dashed where time is folded.
fn lifelines(rungs: &Rungs<'_>) -> Markup {
    let mut tops = vec![0.0];
    tops.extend(rungs.folds.iter().map(|fold| fold.bottom));
    let mut bottoms: Vec<f64> = rungs.folds.iter().map(|fold| fold.top).collect();
    bottoms.push(rungs.height);
    let both = |pen: &mut Pen<'_>, from: f64, to: f64| {
        for x in [LEFT, RIGHT] {
            pen.line(&[(x, from), (x, to)], 1.4);
        }
    };
    html! {
        g class="ph-axis" { (layer(|pen| {
            tops.iter().zip(&bottoms).for_each(|(top, bottom)| both(pen, *top, *bottom));
        })) }
        g class="ph-axis" stroke-dasharray="15 45" { (layer(|pen| {
            rungs.folds.iter().for_each(|fold| both(pen, fold.top, fold.bottom));
        })) }
    }
}

/// Lengths of the folded idle times that no wait labels.
fn folded(ladder: &Ladder, rungs: &Rungs<'_>) -> Markup {
    let middle = |fold: &Folded| (WIDTH / 2.0, f64::midpoint(fold.top, fold.bottom) + 4.0);
    html! {
        @for fold in rungs.folds.iter().filter(|fold| fold.idle.wait(&ladder.waits).is_none()) {
            (text(middle(fold), "ph-quiet", Anchor::Middle, &fold.idle.format_length()))
        }
    }
}

/// Bars along the lines of the waiting ends.
fn waits(ladder: &Ladder, rungs: &Rungs<'_>) -> Markup {
    html! {
        g class=(Line::Again.colour()) { g class="ph-band" { (layer(|pen| {
            for wait in &ladder.waits {
                let x = wait.side.x() - wait.side.outward() * 5.0;
                let top = rungs.height_at(wait.side, wait.since);
                let bottom = rungs.height_at(wait.side, wait.until);
                pen.rectangle((x - 3.0, top), (x + 3.0, bottom));
            }
        })) } }
    }
}

/// Labels of the waits: in the folded idle time, or next to the line if there is space, or else across the arrows.
fn wait_labels(ladder: &Ladder, rungs: &Rungs<'_>) -> Markup {
    let drawn = ladder.waits.iter().map(|wait| {
        let (x, outward) = (wait.side.x(), wait.side.outward());
        let alone = std::slice::from_ref(wait);
        let fold = rungs
            .folds
            .iter()
            .find(|fold| fold.idle.wait(alone).is_some());
        let (top, bottom) = match fold {
            Some(fold) => (fold.top, fold.bottom),
            None => (
                rungs.height_at(wait.side, wait.since),
                rungs.height_at(wait.side, wait.until),
            ),
        };
        let middle = f64::midpoint(top, bottom);
        let is_near = |rung: &Rung<'_>| (rung.start - middle).abs() < NAMES;
        let own = |rung: &&Rung<'_>| rung.arrow.from == wait.side;
        let beside = fold.is_none() && !rungs.rungs.iter().filter(own).any(is_near);
        let edge = if beside {
            x + outward * 9.0
        } else {
            x - outward * 12.0
        };
        let anchor = match (wait.side, beside) {
            (Side::Left, false) | (Side::Right, true) => Anchor::Start,
            (Side::Left, true) | (Side::Right, false) => Anchor::End,
        };
        text(
            (edge, middle + 4.0),
            "ph-quiet ph-halo",
            anchor,
            &wait.label,
        )
    });
    html! { @for label in drawn { (label) } }
}

fn draw_rung(rung: &Rung<'_>, clock: TimeFormat) -> Markup {
    let arrow = rung.arrow;
    let (from, to) = (arrow.from, arrow.from.across());
    let start = (from.x(), rung.start);
    let end = match arrow.lost {
        None => (to.x(), rung.end),
        Some(_) => {
            let fall = (rung.end - rung.start).max(FALL) * LOST;
            (from.x() + (to.x() - from.x()) * LOST, rung.start + fall)
        }
    };
    html! {
        g class=(arrow.line.colour()) { (layer(|pen| {
            pen.line(&[start, end], arrow.line.width());
            match arrow.lost {
                None => pen.fill(&head(start, end)),
                Some(_) => cross(pen, end),
            }
        })) }
        @if let Some(reason) = &arrow.lost {
            @let anchor = if from == Side::Left { Anchor::Start } else { Anchor::End };
            (text((end.0 - from.outward() * 10.0, end.1 + 4.0), "ph-quiet ph-halo", anchor, reason))
        }
        (label(rung, clock))
        (hit(start, end, &hint(rung, clock)))
    }
}

/// Head of an arrow from `start`, with its tip at `end`.
fn head(start: PixelPosition, end: PixelPosition) -> [PixelPosition; 3] {
    let (dx, dy) = (end.0 - start.0, end.1 - start.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let back = |side: f64| (end.0 - ux * 8.0 - uy * side, end.1 - uy * 8.0 + ux * side);
    [end, back(3.4), back(-3.4)]
}

fn cross(pen: &mut Pen<'_>, centre: PixelPosition) {
    let (x, y) = centre;
    let r = 4.5;
    pen.line(&[(x - r, y - r), (x + r, y + r)], 2.2);
    pen.line(&[(x - r, y + r), (x + r, y - r)], 2.2);
}

/// Time of departure at the outer edge, and the label next to the line.
fn label(rung: &Rung<'_>, clock: TimeFormat) -> Markup {
    let from = rung.arrow.from;
    let time = clock.format(rung.arrow.departed);
    let baseline = rung.start + 4.0;
    let room = LEFT - MARGIN - 22.0 - text_width(&time, WORDS);
    let label = shortened(&rung.arrow.label, room);
    let beside = (from.x() + from.outward() * 9.0, baseline);
    let (outer, inward, outward) = match from {
        Side::Left => (MARGIN, Anchor::End, Anchor::Start),
        Side::Right => (WIDTH - MARGIN, Anchor::Start, Anchor::End),
    };
    html! {
        (text(beside, "ph-text", inward, &label))
        (text((outer, baseline), "ph-quiet", outward, &time))
    }
}

/// Shortens `label` to fit.
fn shortened(label: &str, room: f64) -> String {
    if text_width(label, WORDS) <= room {
        return label.to_owned();
    }
    let mut kept = String::new();
    for letter in label.chars() {
        if text_width(&kept, WORDS) + 2.0 * WORDS > room {
            break;
        }
        kept.push(letter);
    }
    kept + "…"
}

/// Invisible target along the arrow, for the tooltip.
fn hit(start: PixelPosition, end: PixelPosition, hint: &str) -> Markup {
    let corners = [(start, -5.0), (end, -5.0), (end, 5.0), (start, 5.0)];
    let points = corners.map(|((x, y), down)| format!("{},{}", tenth(x), tenth(y + down)));
    html! {
        polygon class="ph-hit" points=(points.join(" ")) { title { (hint) } }
    }
}

fn hint(rung: &Rung<'_>, clock: TimeFormat) -> String {
    let arrow = rung.arrow;
    let (left, ended) = (clock.format(arrow.departed), clock.format(arrow.ended));
    let fate = match &arrow.lost {
        Some(reason) => format!("left at {left} ms, lost: {reason}"),
        None => format!("left at {left} ms, arrived at {ended} ms"),
    };
    let lines = [arrow.label.clone(), fate, arrow.hint.clone()];
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Legend of the kinds of line in use.
fn keys(ladder: &Ladder) -> Vec<Key> {
    let half = SAMPLE / 2.0;
    let kinds = Line::ALL.into_iter().enumerate();
    kinds
        .filter(|(_, (line, _))| ladder.arrows.iter().any(|arrow| arrow.line == *line))
        .map(|(series, (line, name))| Key {
            series,
            label: name.to_owned(),
            sample: html! {
                g class=(line.colour()) { (layer(|pen| {
                    pen.line(&[(-half, 0.0), (half, 0.0)], line.width());
                    pen.fill(&head((-half, 0.0), (half, 0.0)));
                })) }
            },
        })
        .collect()
}

/// Description for readers who cannot see the ladder.
fn describe(ladder: &Ladder, rungs: &Rungs<'_>, clock: TimeFormat) -> String {
    let count = |matches: &dyn Fn(&Rung<'_>) -> bool| {
        rungs.rungs.iter().filter(|rung| matches(rung)).count()
    };
    let again = count(&|rung| rung.arrow.line == Line::Again);
    let lost = count(&|rung| rung.arrow.lost.is_some());
    let ends = rungs.rungs.iter().map(|rung| rung.arrow.ended);
    let last = ends.fold(f64::NEG_INFINITY, f64::max);
    let [left, right] = &ladder.ends;
    let mut description = format!(
        "Packets between {left} and {right}: {}, {again} of them sent again, {lost} lost.",
        rungs.rungs.len()
    );
    if last.is_finite() {
        description += &format!(" The last ends at {} ms.", clock.format(last));
    }
    for wait in &ladder.waits {
        description += &format!(" {}.", wait.label);
    }
    description
}

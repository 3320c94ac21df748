//! Shapes: output of plotters' SVG backend, as layers that get their colour from a class.
//!
//! A layer is drawn in black at ten units per pixel, because the backend supports integers and fixed colours only. Then
//! the black is removed, so that shapes inherit fill and stroke of the group around them. Text is not drawn here, but
//! by the page.

use maud::{Markup, PreEscaped, html};
use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::{BLACK, Color, ShapeStyle, WHITE};

/// A position on the page in pixels, from the upper left.
pub(crate) type PixelPosition = (f64, f64);

/// Backend units per pixel.
pub(crate) const UNITS: f64 = 10.0;

/// Shapes of markers, distinguishable without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Cross,
    Plus,
}

/// All markers, in the order in which series use them.
pub(crate) const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Wedge,
    Marker::Cross,
    Marker::Plus,
];

/// Drawing functions of a layer.
pub(crate) struct Pen<'a>(SVGBackend<'a>);

/// Runs `draw` and returns its shapes, for a group with a colour class.
pub(crate) fn layer(draw: impl FnOnce(&mut Pen<'_>)) -> Markup {
    let mut svg = String::new();
    let mut pen = Pen(SVGBackend::with_string(&mut svg, (1, 1)));
    draw(&mut pen);
    drop(pen);
    let inside = svg
        .split_once('\n')
        .map_or("", |(_, rest)| rest)
        .trim_end_matches("</svg>\n");
    let inherited = inside
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"#000000\"", "")
        .replace(" fill=\"#000000\"", "")
        .replace(" fill=\"#FFFFFF\"", " class=\"ph-surface\"");
    html! { g transform="scale(.1)" { (PreEscaped(inherited)) } }
}

impl Pen<'_> {
    /// Draws an open line through `places`.
    pub(crate) fn line(&mut self, places: &[PixelPosition], width: f64) {
        let style = BLACK.stroke_width((width * UNITS).round() as u32);
        let places = places.iter().map(|position| units(*position));
        // Writing to a string cannot fail.
        let _ = self.0.draw_path(places, &style);
    }

    /// Draws a filled polygon.
    pub(crate) fn fill(&mut self, places: &[PixelPosition]) {
        self.polygon(places, &BLACK.filled());
    }

    /// Draws a filled rectangle.
    pub(crate) fn rectangle(&mut self, upper_left: PixelPosition, lower_right: PixelPosition) {
        let (from, to) = (units(upper_left), units(lower_right));
        let _ = self.0.draw_rect(from, to, &BLACK.filled(), true);
    }

    /// Draws the marker of a point. A hollow one has the colour of the surface inside.
    pub(crate) fn marker(&mut self, marker: Marker, at: PixelPosition, hollow: bool) {
        let outline = BLACK.stroke_width(if hollow { 17 } else { 10 });
        let inside: ShapeStyle = if hollow {
            WHITE.filled()
        } else {
            BLACK.filled()
        };
        let r = 3.6;
        let (x, y) = at;
        let around = |corners: &[(f64, f64)]| -> Vec<PixelPosition> {
            corners
                .iter()
                .map(|(dx, dy)| (x + dx * r, y + dy * r))
                .collect()
        };
        let corners = match marker {
            Marker::Circle => {
                let radius = (r * UNITS) as u32;
                let _ = self.0.draw_circle(units(at), radius, &inside, true);
                if hollow {
                    let _ = self.0.draw_circle(units(at), radius, &outline, false);
                }
                return;
            }
            Marker::Cross => {
                self.line(&around(&[(-1.0, -1.0), (1.0, 1.0)]), 2.0);
                return self.line(&around(&[(-1.0, 1.0), (1.0, -1.0)]), 2.0);
            }
            Marker::Plus => {
                self.line(&around(&[(-1.2, 0.0), (1.2, 0.0)]), 2.0);
                return self.line(&around(&[(0.0, -1.2), (0.0, 1.2)]), 2.0);
            }
            Marker::Square => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => around(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
            Marker::Diamond => around(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Marker::Wedge => around(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)]),
        };
        self.polygon(&corners, &inside);
        if hollow {
            let closed = [&*corners, &corners[..1]].concat();
            self.line(&closed, 1.7);
        }
    }

    fn polygon(&mut self, places: &[PixelPosition], style: &ShapeStyle) {
        let places = places.iter().map(|position| units(*position));
        let _ = self.0.fill_polygon(places, style);
    }
}

fn units(position: PixelPosition) -> (i32, i32) {
    let (x, y) = position;
    ((x * UNITS).round() as i32, (y * UNITS).round() as i32)
}

/// Rounds to one decimal, for an attribute.
pub(crate) fn tenth(value: f64) -> f64 {
    (value * UNITS).round() / UNITS
}

/// Approximate width of `text` in pixels. The font is unknown until display. These are the widths of DejaVu Sans, the
/// widest of the usual fonts.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.32,
            'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-' => 0.4,
            'm' | 'w' | 'M' | 'W' | '%' | '−' | '–' | '—' => 0.93,
            'A'..='Z' => 0.69,
            '0'..='9' => 0.64,
            letter if letter.len_utf8() > 2 => 1.0,
            _ => 0.6,
        })
        .sum();
    em * size
}

/// Breaks `text` at spaces into lines of about `width` pixels. Words longer than a line are also broken after hyphens.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let breaks = text_width(word, size) > width;
        let pieces = word.split_inclusive(|letter| breaks && letter == '-');
        for (index, piece) in pieces.enumerate() {
            let (space, gap) = if index == 0 {
                (" ", size / 3.0)
            } else {
                ("", 0.0)
            };
            match lines.last_mut() {
                Some(line) if text_width(line, size) + gap + text_width(piece, size) <= width => {
                    line.push_str(space);
                    line.push_str(piece);
                }
                _ => lines.push(piece.to_owned()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_at_hyphens() {
        let lines = |width| wrap("one early-retransmit", 10.0, width).join("|");
        assert_eq!(lines(200.0), "one early-retransmit");
        assert_eq!(lines(100.0), "one|early-retransmit");
        assert_eq!(lines(60.0), "one early-|retransmit");
        assert_eq!(lines(10.0), "one|early-|retransmit");
    }

    #[test]
    fn shapes_carry_no_colour_of_their_own() {
        let svg = layer(|pen| {
            pen.line(&[(0.0, 1.25), (10.0, 2.0)], 1.8);
            for marker in MARKERS {
                pen.marker(marker, (5.0, 5.0), false);
                pen.marker(marker, (5.0, 5.0), true);
            }
            pen.rectangle((0.0, 0.0), (5.0, 5.0));
        })
        .into_string();
        assert!(!svg.contains('#') && !svg.contains("svg"), "{svg}");
        assert!(svg.contains("points=\"0,13 100,20 \""), "{svg}");
        assert!(svg.contains("class=\"ph-surface\""), "{svg}");
    }

    #[test]
    fn long_text_breaks_at_spaces() {
        let lines = wrap("one two three four", 12.0, 60.0);
        assert_eq!(lines, ["one two", "three four"]);
        assert!(wrap("", 12.0, 60.0).is_empty());
    }
}

//! A packet ladder: two ends as vertical lines, time downwards, each packet an arrow between them.
//!
//! Only what it shows lives here, and which stretches of time are idle and so folded; `rungs`
//! places it, `svg` and `text` draw it. What a packet is, and to which of the four kinds of line
//! it belongs, is for the caller to say. Arrows without a place in time are counted and said so.

mod rungs;
mod svg;
mod text;

use maud::Markup;

use crate::number::digits;

/// A packet ladder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// The heading, also what a screen reader says first.
    pub title: String,
    /// The names of the left and of the right end.
    pub ends: [String; 2],
    /// The packets, in any order.
    pub arrows: Vec<Arrow>,
    /// Times that an end has waited, to be seen as such.
    pub waits: Vec<Wait>,
    /// Sentences beneath.
    pub notes: Vec<String>,
}

/// One end of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The left one, usually the client.
    Left,
    /// The right one.
    Right,
}

/// How an arrow is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Carries data for the first time.
    Data,
    /// Carries nothing but an acknowledgement.
    Acknowledgement,
    /// Opens or closes the connection.
    Control,
    /// Was sent before: what stands out.
    Again,
}

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// The end that sends it.
    pub from: Side,
    /// How it is drawn.
    pub line: Line,
    /// When it leaves, in milliseconds.
    pub departed: f64,
    /// When it arrives or is lost, in milliseconds.
    pub ended: f64,
    /// Why it is lost; nothing where it arrives.
    pub lost: Option<String>,
    /// A few words beside the end that sends it; about 24 characters have room.
    pub label: String,
    /// What else the pointer is told; may be empty.
    pub hint: String,
}

/// A time that an end has waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Who waited.
    pub side: Side,
    /// Since when, in milliseconds.
    pub since: f64,
    /// Until when.
    pub until: f64,
    /// What it waited for: "timeout, 312 ms".
    pub label: String,
}

/// An idle stretch is folded when it is longer than this share of the time that is not idle.
const FOLDED: f64 = 0.1;

impl Side {
    /// The other end.
    pub(crate) const fn across(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

impl Line {
    /// Every kind, in the order in which they cover each other, and its name in the legend.
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Acknowledgement, "acknowledgement"),
        (Self::Data, "data"),
        (Self::Control, "open or close"),
        (Self::Again, "sent again"),
    ];
}

impl Ladder {
    /// One self-contained SVG file.
    pub fn svg(&self) -> String {
        svg::draw(self, true).into_string()
    }

    /// The ladder to be put into a page that holds [`chart_style`](crate::chart_style) once.
    pub fn inline(&self) -> Markup {
        svg::draw(self, false)
    }

    /// Lines of at most 80 characters for a terminal: a line for each packet, at the height of
    /// its departure, with both times.
    pub fn text(&self) -> String {
        text::draw(self)
    }

    /// The arrows that have a place, by departure, and the sentences beneath.
    fn drawn(&self) -> (Vec<&Arrow>, Vec<String>) {
        let has_place = |arrow: &&Arrow| {
            arrow.departed.is_finite() && arrow.ended.is_finite() && arrow.departed <= arrow.ended
        };
        let mut arrows: Vec<&Arrow> = self.arrows.iter().filter(has_place).collect();
        arrows.sort_by(|one, other| one.departed.total_cmp(&other.departed));
        let mut notes = self.notes.clone();
        let without = self.arrows.len() - arrows.len();
        if without > 0 {
            notes.push(format!("Left out, without a place in time: {without}."));
        }
        (arrows, notes)
    }
}

/// A stretch in which nothing was under way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Idle {
    since: f64,
    until: f64,
}

impl Idle {
    fn words(&self) -> String {
        crate::Unit::Millis.exact(self.until - self.since)
    }

    /// The wait that ends with this stretch.
    fn wait<'a>(&self, waits: &'a [Wait]) -> Option<&'a Wait> {
        waits
            .iter()
            .find(|wait| wait.until == self.until && wait.since <= self.since)
    }
}

/// The idle stretches between `arrows` that are long enough to be folded, and how much time is
/// left without all idle ones.
fn folds(arrows: &[&Arrow]) -> (Vec<Idle>, f64) {
    let mut idle = Vec::new();
    let Some(first) = arrows.first() else {
        return (idle, 0.0);
    };
    let mut until = first.departed;
    let mut busy = 0.0;
    for arrow in arrows {
        if arrow.departed > until {
            let since = until;
            let until = arrow.departed;
            idle.push(Idle { since, until });
        }
        busy += (arrow.ended - arrow.departed.max(until)).max(0.0);
        until = until.max(arrow.ended);
    }
    idle.retain(|idle| idle.until - idle.since > busy * FOLDED);
    (idle, busy)
}

/// How times are written: with as many decimals as a ladder of that length can use.
#[derive(Clone, Copy)]
struct Clock {
    decimals: usize,
}

impl Clock {
    fn of(busy: f64) -> Self {
        let decimals = if busy < 20.0 { 3 } else { 1 };
        Self { decimals }
    }

    fn words(self, time: f64) -> String {
        digits(time, self.decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(departed: f64, ended: f64) -> Arrow {
        Arrow {
            from: Side::Left,
            line: Line::Data,
            departed,
            ended,
            lost: None,
            label: String::new(),
            hint: String::new(),
        }
    }

    #[test]
    fn what_is_idle_for_long_is_folded() {
        let arrows = [
            arrow(0.0, 10.0),
            arrow(2.0, 12.0),
            arrow(13.0, 23.0),
            arrow(40.0, 50.0),
        ];
        let arrows: Vec<&Arrow> = arrows.iter().collect();
        let (folds, busy) = folds(&arrows);
        assert_eq!(busy, 32.0);
        let long = Idle {
            since: 23.0,
            until: 40.0,
        };
        assert_eq!(folds, [long]);
        assert_eq!(long.words(), "17 ms");
    }
}

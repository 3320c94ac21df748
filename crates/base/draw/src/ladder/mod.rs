//! Packet ladders: two ends as vertical lines, time downwards, each packet an arrow between them.
//!
//! This module has the data and decides which idle times are folded; `rungs` computes the layout, `svg` and `text` draw
//! it. The caller classifies packets into the four kinds of line. Arrows with invalid times are counted and reported.

mod rungs;
mod svg;
mod text;

use maud::Markup;

use crate::number::digits;

/// A packet ladder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// Title. Screen readers announce it first.
    pub title: String,
    /// Names of the left and right end.
    pub ends: [String; 2],
    /// Packets, in any order.
    pub arrows: Vec<Arrow>,
    /// Waits of an end, to be shown.
    pub waits: Vec<Wait>,
    /// Notes below the ladder.
    pub notes: Vec<String>,
}

/// One end of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left end, usually the client.
    Left,
    /// Right end.
    Right,
}

/// Kind of a packet, which decides its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Carries data for the first time.
    Data,
    /// Carries only an acknowledgement.
    Acknowledgement,
    /// Opens or closes the connection.
    Control,
    /// Retransmission, drawn most prominently.
    Again,
}

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// Sender.
    pub from: Side,
    /// Kind of the packet.
    pub line: Line,
    /// Time of departure, in milliseconds.
    pub departed: f64,
    /// Time of arrival or loss, in milliseconds.
    pub ended: f64,
    /// Reason of a loss; `None` if the packet arrives.
    pub lost: Option<String>,
    /// Label next to the sender; about 24 characters fit.
    pub label: String,
    /// Additional text of the tooltip; may be empty.
    pub hint: String,
}

/// A wait of an end.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Waiting end.
    pub side: Side,
    /// Start, in milliseconds.
    pub since: f64,
    /// End, in milliseconds.
    pub until: f64,
    /// Label: "timeout, 312 ms".
    pub label: String,
}

/// Minimum length of a folded idle time, as a share of the busy time.
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
    /// All kinds in drawing order, with their names in the legend.
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Acknowledgement, "acknowledgement"),
        (Self::Data, "data"),
        (Self::Control, "open or close"),
        (Self::Again, "sent again"),
    ];
}

impl Ladder {
    /// Renders a self-contained SVG file.
    pub fn svg(&self) -> String {
        svg::draw(self, true).into_string()
    }

    /// Renders the ladder for a page that contains [`chart_style`](crate::chart_style) once.
    pub fn inline(&self) -> Markup {
        svg::draw(self, false)
    }

    /// Renders lines of at most 80 characters for a terminal: one per packet, in the order of departure, with both
    /// times.
    pub fn text(&self) -> String {
        text::draw(self)
    }

    /// Arrows with valid times, by departure, and the notes.
    fn drawn(&self) -> (Vec<&Arrow>, Vec<String>) {
        let has_place = |arrow: &&Arrow| {
            arrow.departed.is_finite() && arrow.ended.is_finite() && arrow.departed <= arrow.ended
        };
        let mut arrows: Vec<&Arrow> = self.arrows.iter().filter(has_place).collect();
        arrows.sort_by(|one, other| one.departed.total_cmp(&other.departed));
        let mut notes = self.notes.clone();
        let without = self.arrows.len() - arrows.len();
        if without > 0 {
            notes.push(format!("Omitted, without a position in time: {without}."));
        }
        (arrows, notes)
    }
}

/// An idle time: no packet was under way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Idle {
    since: f64,
    until: f64,
}

impl Idle {
    fn format_length(&self) -> String {
        crate::Unit::Millis.exact(self.until - self.since)
    }

    /// Wait that ends with this idle time.
    fn wait<'a>(&self, waits: &'a [Wait]) -> Option<&'a Wait> {
        waits
            .iter()
            .find(|wait| wait.until == self.until && wait.since <= self.since)
    }
}

/// Idle times between `arrows` that are long enough to be folded, and the busy time without any idle times.
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

/// Format of times: the number of decimals depends on the length of the ladder.
#[derive(Clone, Copy)]
struct TimeFormat {
    decimals: usize,
}

impl TimeFormat {
    fn for_length(busy: f64) -> Self {
        let decimals = if busy < 20.0 { 3 } else { 1 };
        Self { decimals }
    }

    fn format(self, time: f64) -> String {
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
    fn long_idle_periods_are_folded() {
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
        assert_eq!(long.format_length(), "17 ms");
    }
}

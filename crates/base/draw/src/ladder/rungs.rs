//! Layout of a ladder: positions of the packets on the page.
//!
//! Heights are proportional to time where labels have space. Packets of a burst are drawn apart, an idle time is drawn
//! short, and order is always preserved.

use super::{Arrow, Idle, Ladder, Side, folds};

/// Height of one label.
const ROW: f64 = 15.0;
/// Height of a folded idle time.
const FOLD: f64 = 38.0;
/// Height of a ladder relative to its labels, so that arrows can slope.
const AIRY: f64 = 1.5;

/// One packet with its position.
pub(super) struct Rung<'a> {
    pub(super) arrow: &'a Arrow,
    /// Height of the departure, in pixels from the top.
    pub(super) start: f64,
    /// Height of the arrival, or of the time of loss.
    pub(super) end: f64,
}

/// A folded idle time with its position.
pub(super) struct Folded {
    pub(super) idle: Idle,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The complete layout.
pub(super) struct Rungs<'a> {
    pub(super) rungs: Vec<Rung<'a>>,
    pub(super) folds: Vec<Folded>,
    pub(super) height: f64,
    pub(super) busy: f64,
    /// Times and their heights, both increasing.
    heights: Vec<(f64, f64)>,
}

/// Events, in their order at the same time: ends before departures, except for a packet that takes no time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RungEvent {
    End,
    Departure,
    EndAtOnce,
}

impl<'a> Rungs<'a> {
    /// Places `arrows`, sorted by departure.
    pub(super) fn new(arrows: &[&'a Arrow]) -> Self {
        let (idle, busy) = folds(arrows);
        let scale = if busy > 0.0 {
            arrows.len() as f64 * ROW * AIRY / busy
        } else {
            0.0
        };
        let mut rungs: Vec<Rung<'a>> = arrows
            .iter()
            .map(|arrow| Rung {
                arrow,
                start: 0.0,
                end: 0.0,
            })
            .collect();
        let mut placed = Vec::new();
        let mut heights: Vec<(f64, f64)> = Vec::new();
        let mut height = ROW;
        let mut free = [0.0; 2];
        for (time, event, index) in events(arrows) {
            let before = heights.last().map_or(time, |last| last.0);
            match idle
                .iter()
                .find(|idle| (idle.since, idle.until) == (before, time))
            {
                Some(idle) => {
                    placed.push(Folded {
                        idle: *idle,
                        top: height,
                        bottom: height + FOLD,
                    });
                    height += FOLD;
                }
                None => height += (time - before) * scale,
            }
            if event == RungEvent::Departure {
                let side = arrows[index].from as usize;
                height = height.max(free[side]);
                free[side] = height + ROW;
                rungs[index].start = height;
            } else {
                rungs[index].end = height;
            }
            heights.push((time, height));
        }
        Self {
            rungs,
            folds: placed,
            height: height + ROW,
            busy,
            heights,
        }
    }

    /// Height of a departure from `side` at `time`, or of the next event if there is no such departure.
    pub(super) fn height_at(&self, side: Side, time: f64) -> f64 {
        let departure = |rung: &&Rung<'_>| rung.arrow.from == side && rung.arrow.departed == time;
        match self.rungs.iter().find(departure) {
            Some(rung) => rung.start,
            None => {
                let later = self.heights.partition_point(|known| known.0 < time);
                self.heights.get(later).map_or(self.height, |known| known.1)
            }
        }
    }
}

fn events(arrows: &[&Arrow]) -> Vec<(f64, RungEvent, usize)> {
    let mut events: Vec<(f64, RungEvent, usize)> = Vec::with_capacity(arrows.len() * 2);
    for (index, arrow) in arrows.iter().enumerate() {
        let at_once = arrow.departed == arrow.ended;
        let end = if at_once {
            RungEvent::EndAtOnce
        } else {
            RungEvent::End
        };
        events.push((arrow.departed, RungEvent::Departure, index));
        events.push((arrow.ended, end, index));
    }
    events.sort_by(|one, other| {
        one.0
            .total_cmp(&other.0)
            .then((one.1, one.2).cmp(&(other.1, other.2)))
    });
    events
}

/// Layout of a ladder, and its notes.
pub(super) fn lay_out(ladder: &Ladder) -> (Rungs<'_>, Vec<String>) {
    let (arrows, notes) = ladder.drawn();
    (Rungs::new(&arrows), notes)
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;

    #[test]
    fn order_is_kept_and_labels_have_room() {
        let arrow = |from, departed, ended| Arrow {
            from,
            line: Line::Data,
            departed,
            ended,
            lost: None,
            label: String::new(),
            hint: String::new(),
        };
        let burst: Vec<Arrow> = (0..20)
            .map(|n| arrow(Side::Left, f64::from(n) * 1e-3, 10.0 + f64::from(n)))
            .chain([
                arrow(Side::Right, 500.0, 500.0),
                arrow(Side::Left, 500.0, 501.0),
            ])
            .collect();
        let arrows: Vec<&Arrow> = burst.iter().collect();
        let rungs = Rungs::new(&arrows);
        for pair in rungs.rungs[..20].windows(2) {
            assert!(pair[1].start - pair[0].start >= ROW);
            assert!(pair[1].end >= pair[0].end);
        }
        assert!(
            rungs
                .rungs
                .iter()
                .all(|rung| rung.start <= rung.end && rung.end < rungs.height)
        );
        assert_eq!(rungs.folds.len(), 1);
        assert!(rungs.rungs[20].start - rungs.rungs[19].end <= FOLD + 1e-9);
    }
}

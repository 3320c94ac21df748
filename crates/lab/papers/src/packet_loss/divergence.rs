//! The divergence of two ladders of one transaction, in words: the first packet that an end sent at another time or
//! replaced by another, with the possible cause.

use posthaste_draw::{Ladder, Line, Side};
use posthaste_link::Direction;
use posthaste_sim::PacketTrace;
use posthaste_study::RecordValue;
use posthaste_tcp::trace::Sending;
use posthaste_units::Instant;

/// Difference in time from which two packets count as diverging.
const APART_MS: f64 = 1.0;

/// A packet of a ladder. Times count from the first packet, in ms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rung {
    way: Direction,
    sent: f64,
    left: f64,
    /// Position, kind, and reason of the retransmission, as in a ladder.
    label: String,
    again: bool,
    lost: String,
}

impl Rung {
    /// Values of the packet's row in the records.
    pub(super) fn values(&self) -> [RecordValue; 5] {
        [
            self.sent.into(),
            self.left.into(),
            self.way.name().into(),
            self.label.clone().into(),
            self.lost.clone().into(),
        ]
    }

    /// Position and kind.
    fn kind(&self) -> &str {
        match self.label.rsplit_once(' ') {
            Some((kind, _)) if self.again => kind,
            _ => &self.label,
        }
    }

    fn position(&self) -> &str {
        self.label
            .split(' ')
            .next()
            .expect("a split has a first part")
    }

    const fn end(&self) -> &'static str {
        match self.way {
            Direction::Up => "client",
            Direction::Down => "server",
        }
    }
}

/// Converts an emulated ladder.
pub(super) fn emulated(ladder: &Ladder) -> Vec<Rung> {
    let rung = |arrow: &posthaste_draw::Arrow| Rung {
        way: match arrow.from {
            Side::Left => Direction::Up,
            Side::Right => Direction::Down,
        },
        sent: arrow.departed,
        left: arrow.ended,
        label: arrow.label.clone(),
        again: arrow.line == Line::Again,
        lost: arrow.lost.clone().unwrap_or_default(),
    };
    ladder.arrows.iter().map(rung).collect()
}

/// Converts a simulated one.
pub(super) fn simulated(trace: &PacketTrace, began: Instant) -> Vec<Rung> {
    let at = |time: Instant| time.saturating_since(began).as_millis_f64();
    let rung = |packet: &posthaste_sim::TracedPacket| Rung {
        way: packet.direction,
        sent: at(packet.sent),
        left: at(packet.left),
        label: packet.label(),
        again: packet.sending != Sending::First,
        lost: packet.loss().unwrap_or_default().to_owned(),
    };
    trace.packets().iter().map(rung).collect()
}

/// Describes the first divergence of the kernel's ladder from the model's. `None` if they agree.
pub(super) fn divergence(kernel: &[Rung], model: &[Rung]) -> Option<String> {
    kernel.iter().find_map(|rung| {
        let same = |other: &&Rung| other.way == rung.way && other.position() == rung.position();
        let Some(other) = model.iter().find(same) else {
            return Some(format!(
                "the kernel's {} sends {} as well",
                rung.end(),
                rung.label
            ));
        };
        if other.kind() != rung.kind() {
            return Some(format!(
                "the kernel's {} sends {} and the model's {}",
                rung.end(),
                rung.label,
                other.label
            ));
        }
        let later = rung.sent - other.sent;
        (later.abs() > APART_MS).then(|| {
            let in_model = if rung.label == other.label {
                String::new()
            } else {
                format!(" (in the model {})", other.label)
            };
            format!(
                "{}{in_model} of the {} leaves {:.1} ms {}, {}",
                rung.label,
                rung.end(),
                later.abs(),
                if later > 0.0 { "later" } else { "earlier" },
                cause(other, model)
            )
        })
    })
}

/// Cause of the departure of a packet of the model.
fn cause(rung: &Rung, model: &[Rung]) -> &'static str {
    let came =
        |other: &Rung| other.way != rung.way && other.lost.is_empty() && other.left == rung.sent;
    if model.iter().any(came) {
        "an answer to what has come: the machine's delay"
    } else if rung.again {
        "by a timer"
    } else {
        "by the program, or by the timer of an acknowledgement"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(way: Direction, sent: f64, label: &str, again: bool) -> Rung {
        Rung {
            way,
            sent,
            left: sent + 10.0,
            label: label.to_owned(),
            again,
            lost: String::new(),
        }
    }

    fn divergence_of(kernel: Rung, model: Rung) -> Option<String> {
        let syn = rung(Direction::Up, 0.0, "1 syn", false);
        divergence(&[syn.clone(), kernel], &[syn, model])
    }

    #[test]
    fn the_first_that_differs_is_told_with_its_cause() {
        let down = |sent, label, again| rung(Direction::Down, sent, label, again);
        let answer = |sent| down(sent, "1 syn-ack", false);
        assert_eq!(divergence_of(answer(10.9), answer(10.0)), None);
        let late = divergence_of(answer(13.0), answer(10.0)).unwrap();
        assert!(late.starts_with("1 syn-ack of the server leaves 3.0 ms later, an answer"));
        let timer = divergence_of(
            down(40.0, "1 syn-ack rto", true),
            down(44.0, "1 syn-ack answer", true),
        );
        let timer = timer.unwrap();
        assert_eq!(
            timer,
            "1 syn-ack rto (in the model 1 syn-ack answer) of the server leaves 4.0 ms earlier, by a timer"
        );
        let other = divergence_of(answer(10.0), down(10.0, "1 rst", false)).unwrap();
        assert_eq!(
            other,
            "the kernel's server sends 1 syn-ack and the model's 1 rst"
        );
        let more = divergence_of(down(10.0, "2 ack 1", false), answer(10.0)).unwrap();
        assert_eq!(more, "the kernel's server sends 2 ack 1 as well");
    }
}

//! The trace of one connection as a packet ladder.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use posthaste_draw::{Arrow, Ladder, Line, Side, Wait};
use posthaste_link::{Direction, Fate};
use posthaste_tcp::trace::Kind;
use posthaste_units::Instant;

use super::Form;
use super::event_order::{Seen, Step};
use super::what::What;

/// Maximum number of packets drawn.
const DRAWN: usize = 2_000;
/// IP protocol number of TCP.
const TCP: u8 = 6;

/// Draws a connection's packets as a ladder. Times count from the first packet.
pub fn ladder<'a>(seen: impl IntoIterator<Item = &'a Seen>) -> Ladder {
    let mut seen = seen.into_iter().peekable();
    let Some(first) = seen.peek().copied() else {
        return Ladder::default();
    };
    let origin = first.packet_record.arrived;
    let flow = &first.packet_record.flow;
    let mut ladder = Ladder {
        title: format!("Connection {}", first.packet_record.connection),
        ends: [
            format!("client {}", flow.client),
            format!("server {}", flow.server),
        ],
        ..Ladder::default()
    };
    for seen in seen {
        ladder.arrows.push(arrow(seen, origin));
        ladder.waits.extend(wait(seen, origin));
    }
    if flow.protocol == TCP {
        let words = "The number is the packet's position; sequence numbers count from the SYN.";
        ladder.notes.push(words.to_owned());
    }
    ladder
}

const fn side(direction: Direction) -> Side {
    match direction {
        Direction::Up => Side::Left,
        Direction::Down => Side::Right,
    }
}

fn ms(time: Instant, origin: Instant) -> f64 {
    time.since(origin).as_millis_f64()
}

fn arrow(seen: &Seen, origin: Instant) -> Arrow {
    let packet_record = &seen.packet_record;
    let lost = match packet_record.fate {
        Fate::Delivered(_) => None,
        Fate::Dropped(reason) => Some(reason.name().to_owned()),
    };
    Arrow {
        from: side(packet_record.direction),
        line: line(seen),
        departed: ms(packet_record.arrived, origin),
        ended: ms(packet_record.sent, origin),
        lost,
        label: label(seen),
        hint: hint(seen),
    }
}

fn line(seen: &Seen) -> Line {
    if seen.is_again() {
        return Line::Again;
    }
    match seen.what {
        What::Segment(Kind::Syn | Kind::SynAck | Kind::Fin | Kind::Rst) => Line::Control,
        What::Segment(kind) if kind.is_ack() || kind == Kind::KeepAlive => Line::Acknowledgement,
        _ => Line::Data,
    }
}

/// Label such as `8 7241:8689 rto`: position, kind or bytes, and reason of a retransmission.
fn label(seen: &Seen) -> String {
    let words = match (seen.what, &seen.tcp) {
        (What::Segment(kind), Some(tcp)) => {
            let bytes = tcp.sequence..tcp.sequence + u64::from(tcp.payload);
            kind.words(&bytes, tcp.acknowledgment, tcp.sending)
        }
        (what, _) => what.name().to_owned(),
    };
    let packet_record = &seen.packet_record;
    let copy = if packet_record.copy > 0 { "copy " } else { "" };
    format!("{} {copy}{words}", packet_record.position)
}

fn hint(seen: &Seen) -> String {
    let mut words = vec![format!(
        "{}, {} bytes",
        seen.what.name(),
        seen.packet_record.length
    )];
    if let Some(tcp) = &seen.tcp {
        words.push(format!("flags {}, window {}", tcp.flags, tcp.window));
        let blocks = tcp.sack.iter().map(|(from, to)| format!("{from}:{to}"));
        let blocks: Vec<String> = blocks.collect();
        if !blocks.is_empty() {
            words.push(format!("selectively acknowledged {}", blocks.join(" ")));
        }
    }
    words.join("\n")
}

/// Wait of the timer that ended with this packet.
fn wait(seen: &Seen, origin: Instant) -> Option<Wait> {
    let tcp = seen.tcp.as_ref()?;
    let name = tcp.sending?.timer()?;
    let (since, until) = (tcp.before?, seen.packet_record.arrived);
    let waited = until.since(since).as_millis_f64();
    Some(Wait {
        side: side(seen.packet_record.direction),
        since: ms(since, origin),
        until: ms(until, origin),
        label: format!("{name}, {waited:.0} ms after the last"),
    })
}

/// A file for one ladder, written at the end.
pub(super) struct Drawing {
    file: File,
    draw: fn(&Ladder) -> String,
    notes: Vec<String>,
    packets: Vec<Arc<Seen>>,
    more: u64,
    connections: u64,
}

impl Drawing {
    pub(super) fn new(file: File, draw: fn(&Ladder) -> String, notes: &[String]) -> Self {
        Self {
            file,
            draw,
            notes: notes.to_vec(),
            packets: Vec::new(),
            more: 0,
            connections: 0,
        }
    }

    /// True if a packet belongs to the drawn connection. The first packets determine it.
    fn is_of(&mut self, seen: &Seen) -> bool {
        let Some(first) = self.packets.first() else {
            return true;
        };
        let is_tcp = |seen: &Seen| seen.packet_record.flow.protocol == TCP;
        if is_tcp(seen) && !is_tcp(first) {
            self.packets.clear();
            self.more = 0;
            return true;
        }
        first.packet_record.connection == seen.packet_record.connection
    }
}

impl Form for Drawing {
    fn step(&mut self, step: &Step) -> io::Result<()> {
        let Step::Came(seen) = step else {
            return Ok(());
        };
        self.connections = self.connections.max(seen.packet_record.connection);
        if self.is_of(seen) {
            if self.packets.len() < DRAWN {
                self.packets.push(seen.clone());
            } else {
                self.more += 1;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let mut ladder = ladder(self.packets.iter().map(AsRef::as_ref));
        if self.more > 0 {
            let words = format!(
                "{} later packets are not drawn; a trace as CSV has them.",
                self.more
            );
            ladder.notes.push(words);
        }
        if self.connections > 1 {
            let others = self.connections - 1;
            ladder.notes.push(format!(
                "Other connections: {others}; a trace as CSV has them."
            ));
        }
        ladder.notes.append(&mut self.notes);
        self.file.write_all((self.draw)(&ladder).as_bytes())
    }
}

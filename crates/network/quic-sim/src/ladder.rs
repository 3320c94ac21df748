//! One transaction as a packet ladder, in the words of QUIC.

use std::fmt::Write as _;

use posthaste_draw::{Arrow, Ladder, Line, Side, Wait};
use posthaste_link::quic::QuicPacketType;
use posthaste_link::{Direction, Fate};
use posthaste_sim::{LadderOptions, LadderPacket, ScenarioError};
use posthaste_units::{Instant, Seed};

use crate::{DatagramTrace, QuicScenario, QuicSimulator, SentCause, TracedDatagram};

/// Explanation of the labels.
const NOTE: &str =
    "The number is the datagram's position; frames are known from the sender's counters.";

/// Simulates transaction `number` and draws its datagrams. Times count from the first one.
pub fn quic_ladder(
    scenario: &QuicScenario,
    seed: Seed,
    number: u64,
) -> Result<Ladder, ScenarioError> {
    let mut simulator = QuicSimulator::new(scenario.clone(), seed)?;
    let mut trace = DatagramTrace::new();
    let transaction = simulator.play_before(number, &mut trace);
    let origin = transaction.began;
    let options = LadderOptions {
        number,
        responses: transaction.responses,
        ends: ["client QUIC", "server QUIC"].map(str::to_owned),
        note: NOTE,
    };
    Ok(options.draw(trace.datagrams(), |datagram| LadderPacket {
        arrow: arrow(datagram, origin),
        wait: wait(datagram, origin),
    }))
}

fn ms(time: Instant, origin: Instant) -> f64 {
    time.since(origin).as_millis_f64()
}

const fn side(direction: Direction) -> Side {
    match direction {
        Direction::Up => Side::Left,
        Direction::Down => Side::Right,
    }
}

fn arrow(datagram: &TracedDatagram, origin: Instant) -> Arrow {
    Arrow {
        from: side(datagram.direction),
        line: line(datagram),
        departed: ms(datagram.sent, origin),
        ended: ms(datagram.left, origin),
        lost: datagram.loss().map(str::to_owned),
        label: datagram.label(),
        hint: datagram.hint(),
    }
}

fn line(datagram: &TracedDatagram) -> Line {
    let frames = &datagram.frames;
    if datagram.cause == SentCause::Probe {
        Line::Again
    } else if frames.has_stream() {
        Line::Data
    } else if frames.close || datagram.is_of_handshake() || datagram.cause == SentCause::Stateless {
        Line::Control
    } else {
        Line::Acknowledgement
    }
}

fn wait(datagram: &TracedDatagram, origin: Instant) -> Option<Wait> {
    let before = datagram
        .before
        .filter(|_| datagram.cause == SentCause::Probe)?;
    let waited = datagram.sent.since(before).as_millis_f64();
    Some(Wait {
        side: side(datagram.direction),
        since: ms(before, origin),
        until: ms(datagram.sent, origin),
        label: format!("probe timeout, {waited:.0} ms after the last"),
    })
}

impl TracedDatagram {
    /// True if one of its packets belongs to the handshake.
    fn is_of_handshake(&self) -> bool {
        let mut packets = self.packets.iter().flat_map(|datagram| datagram.packets());
        packets.any(|packet| packet != QuicPacketType::OneRtt)
    }

    /// Label such as `2 Initial+Handshake` or `7 1-RTT STREAM probe`: position, packets, the most important frame of a
    /// packet after the handshake, and the cause.
    pub fn label(&self) -> String {
        let copy = if self.copy > 0 { "copy " } else { "" };
        let mut text = format!("{} {copy}{}", self.position, self.packet_names());
        if self.frames.close {
            text += " close";
        } else if let Some(frame) = self.frames.principal().filter(|_| !self.is_of_handshake()) {
            let _ = write!(text, " {frame}");
        }
        match self.cause {
            SentCause::Ordinary => {}
            SentCause::Probe => text += " probe",
            SentCause::Losses(lost) => {
                let _ = write!(text, ", {lost} lost");
            }
            SentCause::Stateless => text += " reset",
        }
        text
    }

    fn packet_names(&self) -> String {
        let packets = self.packets.as_ref();
        packets.map_or_else(|| "unreadable".to_owned(), ToString::to_string)
    }

    /// Details that do not fit in the label.
    pub fn hint(&self) -> String {
        let frames: Vec<&str> = self.frames.names().collect();
        let frames = if frames.is_empty() {
            "frames unknown".to_owned()
        } else {
            frames.join(", ")
        };
        let mut text = format!("{}, {} bytes\n{frames}", self.packet_names(), self.bytes);
        if let SentCause::Losses(lost) = self.cause {
            let _ = write!(text, "\nthe sender has declared {lost} packets lost");
        }
        text
    }

    /// Cause of the loss. `None` if the datagram arrived intact.
    pub fn loss(&self) -> Option<&'static str> {
        match self.fate {
            Fate::Dropped(reason) => Some(reason.name()),
            Fate::Delivered(marks) if marks.flipped > 0 => Some("damaged"),
            Fate::Delivered(_) => None,
        }
    }
}

//! One transaction as a packet ladder.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use posthaste_draw::{Arrow, Ladder, Line, Side, Wait};
use posthaste_link::Direction;
use posthaste_sim::{PacketTrace, Scenario, Simulator, TracedPacket, Transaction};
use posthaste_tcp::trace::{SegmentKind, Sending};
use posthaste_units::{Instant, Seed};

use crate::commands::Failure;

/// Maximum number of packets drawn.
const DRAWN: usize = 2_000;

/// Destination of a ladder. It decides the form.
#[derive(Clone, Debug)]
pub(super) enum Drawing {
    /// Text to standard output.
    Here,
    /// Text to a file.
    Text(PathBuf),
    /// SVG to a file.
    Svg(PathBuf),
}

impl FromStr for Drawing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if text == "-" => Ok(Self::Here),
            Some("txt") => Ok(Self::Text(path)),
            Some("svg") => Ok(Self::Svg(path)),
            _ => Err("name the ladder FILE.svg or FILE.txt".to_owned()),
        }
    }
}

impl Drawing {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Here => None,
            Self::Text(path) | Self::Svg(path) => Some(path),
        }
    }

    /// Draws the ladder of transaction `number`. `notes` go below a ladder in a file; a terminal already shows them
    /// above it.
    pub(super) fn of(
        &self,
        scenario: &Scenario,
        seed: Seed,
        number: u64,
        notes: &[String],
    ) -> Result<String, Failure> {
        let mut simulator = Simulator::new(scenario.clone(), seed).map_err(Failure::usage)?;
        let mut trace = PacketTrace::new();
        let names = [scenario.client.name, scenario.server.name];
        let transaction = simulator.play_before(number, &mut trace);
        let mut ladder = ladder(names, &transaction, trace.packets());
        if self.path().is_some() {
            ladder.notes.extend_from_slice(notes);
        }
        Ok(match self {
            Self::Svg(_) => ladder.svg(),
            _ => ladder.text(),
        })
    }
}

/// Builds the ladder. Times count from the first packet.
fn ladder(names: [&str; 2], transaction: &Transaction<'_>, packets: &[TracedPacket]) -> Ladder {
    let origin = transaction.began;
    let total: f64 = transaction
        .responses
        .iter()
        .map(|response| response.total().as_millis_f64())
        .sum();
    let mut title = format!("Transaction {}: {total:.1} ms", transaction.number);
    if let [response] = transaction.responses {
        let part = |span: posthaste_units::Span| span.as_millis_f64();
        title += &format!(
            " = {:.1} connection + {:.1} request + {:.1} processing + {:.1} reply",
            part(response.t_conn),
            part(response.t_req),
            part(response.t_proc),
            part(response.t_resp)
        );
    }
    let [client, server] = names;
    let drawn = || packets.iter().take(DRAWN);
    let mut notes = vec![
        "The number is the packet's position; sequence numbers count from the SYN.".to_owned(),
    ];
    if packets.len() > DRAWN {
        notes.push(format!(
            "{} later packets are not drawn.",
            packets.len() - DRAWN
        ));
    }
    Ladder {
        title,
        ends: [format!("client {client}"), format!("server {server}")],
        arrows: drawn().map(|packet| arrow(packet, origin)).collect(),
        waits: drawn().filter_map(|packet| wait(packet, origin)).collect(),
        notes,
    }
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

fn arrow(packet: &TracedPacket, origin: Instant) -> Arrow {
    Arrow {
        from: side(packet.direction),
        line: line(packet),
        departed: ms(packet.sent, origin),
        ended: ms(packet.left, origin),
        lost: packet.loss().map(str::to_owned),
        label: packet.label(),
        hint: packet.hint(),
    }
}

fn line(packet: &TracedPacket) -> Line {
    match packet.what {
        _ if packet.sending != Sending::First => Line::Again,
        SegmentKind::Syn | SegmentKind::SynAck | SegmentKind::Fin | SegmentKind::Rst => {
            Line::Control
        }
        SegmentKind::Data | SegmentKind::DataFin => Line::Data,
        SegmentKind::Ack
        | SegmentKind::DupAck
        | SegmentKind::WindowUpdate
        | SegmentKind::KeepAlive => Line::Acknowledgement,
    }
}

fn wait(packet: &TracedPacket, origin: Instant) -> Option<Wait> {
    let (waited, name) = packet.waited()?;
    Some(Wait {
        side: side(packet.direction),
        since: ms(packet.before?, origin),
        until: ms(packet.sent, origin),
        label: format!("{name}, {:.0} ms after the last", waited.as_millis_f64()),
    })
}

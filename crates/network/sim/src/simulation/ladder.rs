//! One transaction as a packet ladder.

use posthaste_draw::{Arrow, Ladder, Line, Side, Wait};
use posthaste_link::Direction;
use posthaste_tcp::trace::{SegmentKind, Sending};
use posthaste_units::{Instant, ResponseTime, Seed, Span};

use crate::{PacketTrace, Scenario, ScenarioError, Simulator, TracedPacket, Transaction};

/// Maximum number of packets drawn.
const DRAWN: usize = 2_000;

/// Simulates transaction `number` and draws its packets.
pub fn ladder(scenario: &Scenario, seed: Seed, number: u64) -> Result<Ladder, ScenarioError> {
    let mut simulator = Simulator::new(scenario.clone(), seed)?;
    let mut trace = PacketTrace::new();
    let names = [scenario.client.name, scenario.server.name];
    let transaction = simulator.play_before(number, &mut trace);
    Ok(draw(names, &transaction, trace.packets()))
}

/// Builds the ladder. Times count from the first packet.
fn draw(names: [&str; 2], transaction: &Transaction<'_>, packets: &[TracedPacket]) -> Ladder {
    let origin = transaction.began;
    let [client, server] = names;
    let note = "The number is the packet's position; sequence numbers count from the SYN.";
    LadderOptions {
        number: transaction.number,
        responses: transaction.responses,
        ends: [format!("client {client}"), format!("server {server}")],
        note,
    }
    .draw(packets, |packet| LadderPacket {
        arrow: arrow(packet, origin),
        wait: wait(packet, origin),
    })
}

/// The parts of a ladder that every transport has.
#[derive(Clone, Debug)]
pub struct LadderOptions<'a> {
    /// Number of the transaction.
    pub number: u64,
    /// Its response times.
    pub responses: &'a [ResponseTime],
    /// Names of client and server.
    pub ends: [String; 2],
    /// Explanation of the labels.
    pub note: &'a str,
}

/// A packet of a ladder, with the wait before it.
#[derive(Clone, Debug)]
pub struct LadderPacket {
    /// The packet.
    pub arrow: Arrow,
    /// Running time of the timer that caused it.
    pub wait: Option<Wait>,
}

impl LadderOptions<'_> {
    /// Draws the first packets, in the order of their transmission.
    pub fn draw<P>(self, packets: &[P], rung: impl Fn(&P) -> LadderPacket) -> Ladder {
        let mut notes = vec![self.note.to_owned()];
        if packets.len() > DRAWN {
            notes.push(format!(
                "{} later packets are not drawn.",
                packets.len() - DRAWN
            ));
        }
        let drawn = packets.iter().take(DRAWN).map(rung);
        let (arrows, waits): (Vec<_>, Vec<_>) =
            drawn.map(|packet| (packet.arrow, packet.wait)).unzip();
        Ladder {
            title: title(self.number, self.responses),
            ends: self.ends,
            arrows,
            waits: waits.into_iter().flatten().collect(),
            notes,
        }
    }
}

/// The response time, with its parts if there is one exchange.
fn title(number: u64, responses: &[ResponseTime]) -> String {
    let total: f64 = responses
        .iter()
        .map(|response| response.total().as_millis_f64())
        .sum();
    let mut title = format!("Transaction {number}: {total:.1} ms");
    if let [response] = responses {
        let part = |span: Span| span.as_millis_f64();
        title += &format!(
            " = {:.1} connection + {:.1} request + {:.1} processing + {:.1} reply",
            part(response.t_conn),
            part(response.t_req),
            part(response.t_proc),
            part(response.t_resp)
        );
    }
    title
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
    match packet.kind {
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

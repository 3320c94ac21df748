//! The trace of one connection as a packet ladder.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use posthaste_draw::{Arrow, Ladder, Line, Side, Wait};
use posthaste_link::change::AppliedChange;
use posthaste_link::{Direction, Fate};
use posthaste_tcp::trace::SegmentKind;
use posthaste_units::Instant;

use super::TraceFormat;
use super::event_order::{DecodedPacket, PacketEvent};
use super::packet_kind::PacketKind;

/// Maximum number of packets drawn.
const DRAWN: usize = 2_000;
/// IP protocol number of TCP.
const TCP: u8 = 6;

/// Draws a connection's packets as a ladder. Times count from the first packet.
pub fn ladder<'a>(packets: impl IntoIterator<Item = &'a DecodedPacket>) -> Ladder {
    let mut packets = packets.into_iter().peekable();
    let Some(first) = packets.peek().copied() else {
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
    let mut is_quic = false;
    for packet in packets {
        is_quic |= matches!(packet.kind, PacketKind::Quic(_));
        ladder.arrows.push(arrow(packet, origin));
        ladder.waits.extend(wait(packet, origin));
    }
    if flow.protocol == TCP {
        let text = "The number is the packet's position; sequence numbers count from the SYN.";
        ladder.notes.push(text.to_owned());
    }
    if is_quic {
        let text = "QUIC: types of packets and bytes of UDP payload. The rest is encrypted; packets of type 1-RTT have \
                     data, acknowledgements, probes or a reset.";
        ladder.notes.push(text.to_owned());
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
    time.saturating_since(origin).as_millis_f64()
}

fn arrow(packet: &DecodedPacket, origin: Instant) -> Arrow {
    let packet_record = &packet.packet_record;
    let lost = match packet_record.fate {
        Fate::Delivered(_) => None,
        Fate::Dropped(reason) => Some(reason.name().to_owned()),
    };
    Arrow {
        from: side(packet_record.direction),
        line: line(packet),
        departed: ms(packet_record.arrived, origin),
        ended: ms(packet_record.sent, origin),
        lost,
        label: label(packet),
        hint: hint(packet),
    }
}

fn line(packet: &DecodedPacket) -> Line {
    if packet.is_again() {
        return Line::Again;
    }
    match packet.kind {
        PacketKind::Segment(
            SegmentKind::Syn | SegmentKind::SynAck | SegmentKind::Fin | SegmentKind::Rst,
        ) => Line::Control,
        PacketKind::Segment(kind) if kind.is_ack() || kind == SegmentKind::KeepAlive => {
            Line::Acknowledgement
        }
        PacketKind::Quic(datagram) if datagram.has_long_header() => Line::Control,
        _ => Line::Data,
    }
}

/// Label such as `8 7241:8689 rto`: position, kind or bytes, and reason of a retransmission. That of a QUIC datagram is
/// like `3 Initial+Handshake 1200`, with the bytes of its payload.
fn label(packet: &DecodedPacket) -> String {
    let text = match (packet.kind, &packet.tcp) {
        (PacketKind::Segment(kind), Some(tcp)) => {
            let bytes = tcp.sequence..tcp.sequence + u64::from(tcp.payload);
            kind.describe(&bytes, tcp.acknowledgment, tcp.sending)
        }
        (PacketKind::Quic(datagram), _) => format!("{datagram} {}", datagram.payload()),
        (kind, _) => kind.to_string(),
    };
    let packet_record = &packet.packet_record;
    let copy = if packet_record.copy > 0 { "copy " } else { "" };
    format!("{} {copy}{text}", packet_record.position)
}

fn hint(packet: &DecodedPacket) -> String {
    let mut text = vec![format!(
        "{}, {} bytes",
        packet.kind, packet.packet_record.length
    )];
    if let Some(tcp) = &packet.tcp {
        text.push(format!("flags {}, window {}", tcp.flags, tcp.window));
        let blocks = tcp.sack.iter().map(|(from, to)| format!("{from}:{to}"));
        let blocks: Vec<String> = blocks.collect();
        if !blocks.is_empty() {
            text.push(format!("selectively acknowledged {}", blocks.join(" ")));
        }
    }
    text.join("\n")
}

/// Wait of the timer that ended with this packet.
fn wait(packet: &DecodedPacket, origin: Instant) -> Option<Wait> {
    let tcp = packet.tcp.as_ref()?;
    let name = tcp.sending?.timer()?;
    let (since, until) = (tcp.before?, packet.packet_record.arrived);
    let waited = until.saturating_since(since).as_millis_f64();
    Some(Wait {
        side: side(packet.packet_record.direction),
        since: ms(since, origin),
        until: ms(until, origin),
        label: format!("{name}, {waited:.0} ms after the last"),
    })
}

/// A change of the links, with its time since the first packet.
fn change_note(applied: &AppliedChange, origin: Instant) -> String {
    let AppliedChange { at, change } = applied;
    if *at < origin {
        return format!("Changed before the first packet: {change}.");
    }
    format!("Changed at {:.3} ms: {change}.", ms(*at, origin))
}

/// A file for one ladder, written at the end.
pub(super) struct LadderFile {
    file: File,
    draw: fn(&Ladder) -> String,
    notes: Vec<String>,
    packets: Vec<Arc<DecodedPacket>>,
    changes: Vec<AppliedChange>,
    more: u64,
    connections: u64,
}

impl LadderFile {
    pub(super) fn new(file: File, draw: fn(&Ladder) -> String, notes: &[String]) -> Self {
        Self {
            file,
            draw,
            notes: notes.to_vec(),
            packets: Vec::new(),
            changes: Vec::new(),
            more: 0,
            connections: 0,
        }
    }

    /// True if a packet belongs to the drawn connection. The first packets determine it.
    fn is_of(&mut self, packet: &DecodedPacket) -> bool {
        let Some(first) = self.packets.first() else {
            return true;
        };
        let is_tcp = |packet: &DecodedPacket| packet.packet_record.flow.protocol == TCP;
        if is_tcp(packet) && !is_tcp(first) {
            self.packets.clear();
            self.more = 0;
            return true;
        }
        first.packet_record.connection == packet.packet_record.connection
    }
}

impl TraceFormat for LadderFile {
    fn write(&mut self, event: &PacketEvent) -> io::Result<()> {
        let PacketEvent::Arrived(packet) = event else {
            return Ok(());
        };
        self.connections = self.connections.max(packet.packet_record.connection);
        if self.is_of(packet) {
            if self.packets.len() < DRAWN {
                self.packets.push(packet.clone());
            } else {
                self.more += 1;
            }
        }
        Ok(())
    }

    fn change(&mut self, applied: &AppliedChange) -> io::Result<()> {
        self.changes.push(applied.clone());
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let mut ladder = ladder(self.packets.iter().map(AsRef::as_ref));
        let first = self.packets.first();
        let origin = first.map_or(Instant::ORIGIN, |first| first.packet_record.arrived);
        ladder.notes.extend(
            self.changes
                .iter()
                .map(|applied| change_note(applied, origin)),
        );
        if self.more > 0 {
            let text = format!(
                "{} later packets are not drawn; a trace as CSV has them.",
                self.more
            );
            ladder.notes.push(text);
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

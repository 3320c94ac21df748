//! The trace as CSV.

use std::fs::File;
use std::io;

use posthaste_link::Fate;
use posthaste_link::change::AppliedChange;

use super::event_order::{DecodedPacket, PacketEvent};
use super::packet_kind::PacketKind;
use super::{DecodedSegment, TraceFormat};

/// The columns, in order.
const COLUMNS: [&str; 22] = [
    "arrived_ns",
    "left_ns",
    "sent_ns",
    "direction",
    "connection",
    "flow",
    "position",
    "copy",
    "bytes",
    "what",
    "sending",
    "flags",
    "seq",
    "ack",
    "payload",
    "sack",
    "window",
    "fate",
    "reason",
    "flipped",
    "order",
    "marked",
];

/// A CSV file.
pub(super) struct CsvTable {
    lines: csv::Writer<File>,
    begun: bool,
}

impl CsvTable {
    pub(super) fn new(file: File) -> Self {
        let lines = csv::WriterBuilder::new()
            .buffer_capacity(1 << 16)
            .from_writer(file);
        Self {
            lines,
            begun: false,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.begun {
            self.lines.write_record(COLUMNS)?;
            self.begun = true;
        }
        Ok(())
    }
}

impl TraceFormat for CsvTable {
    fn write(&mut self, event: &PacketEvent) -> io::Result<()> {
        self.begin()?;
        if let PacketEvent::Arrived(packet) = event {
            self.lines.write_record(line(packet))?;
        }
        Ok(())
    }

    fn change(&mut self, applied: &AppliedChange) -> io::Result<()> {
        self.begin()?;
        let time = applied.at.as_nanos().to_string();
        let change = applied.change.to_string();
        let field = |column| match column {
            "arrived_ns" => &time,
            "what" => "change",
            "reason" => &change,
            _ => "",
        };
        self.lines.write_record(COLUMNS.map(field))?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.begin()?;
        self.lines.flush()
    }
}

fn line(packet: &DecodedPacket) -> [String; COLUMNS.len()] {
    let packet_record = &packet.packet_record;
    let tcp = packet.tcp.as_ref();
    let cell = |field: fn(&DecodedSegment) -> String| tcp.map(field).unwrap_or_default();
    let (fate, reason, marks) = match packet_record.fate {
        Fate::Delivered(marks) => ("delivered", "", Some(marks)),
        Fate::Dropped(reason) => ("dropped", reason.name(), None),
    };
    let order = match marks {
        Some(marks) if marks.overtook => "overtook",
        Some(marks) if marks.held => "held",
        _ => "",
    };
    let sent = marks.map(|_| packet_record.sent.as_nanos().to_string());
    [
        packet_record.arrived.as_nanos().to_string(),
        packet_record.left.as_nanos().to_string(),
        sent.unwrap_or_default(),
        packet_record.direction.to_string(),
        packet_record.connection.to_string(),
        packet_record.flow.to_string(),
        packet_record.position.to_string(),
        packet_record.copy.to_string(),
        packet_record.length.to_string(),
        packet.kind.to_string(),
        cell(|tcp| tcp.sending.map_or("", |sending| sending.name()).to_owned()),
        cell(|tcp| tcp.flags.clone()),
        cell(|tcp| tcp.sequence.to_string()),
        cell(|tcp| {
            tcp.acknowledgment
                .map(|number| number.to_string())
                .unwrap_or_default()
        }),
        match packet.kind {
            PacketKind::Quic(datagram) => datagram.payload().to_string(),
            _ => cell(|tcp| tcp.payload.to_string()),
        },
        cell(|tcp| {
            let blocks: Vec<String> = tcp
                .sack
                .iter()
                .map(|(from, to)| format!("{from}-{to}"))
                .collect();
            blocks.join(" ")
        }),
        cell(|tcp| tcp.window.to_string()),
        fate.to_owned(),
        reason.to_owned(),
        marks.map_or(0, |marks| marks.flipped).to_string(),
        order.to_owned(),
        u8::from(marks.is_some_and(|marks| marks.congested)).to_string(),
    ]
}

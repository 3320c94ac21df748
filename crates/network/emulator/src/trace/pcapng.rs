//! The trace as pcapng, for Wireshark and similar tools (draft-ietf-opsawg-pcapng).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use pcap_parser::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, Linktype, OptionCode,
    PcapNGOption, SectionHeaderBlock, ToVec as _,
};
use posthaste_link::change::AppliedChange;
use posthaste_link::{Direction, Fate};
use posthaste_units::Instant;

use super::TraceFormat;
use super::event_order::{DecodedPacket, PacketEvent};
use crate::path::packet_record::HEAD;

/// Resolution of time stamps: 10^-9 s (if_tsresol).
const NANOSECONDS: u8 = 9;
/// Option epb_packetid, equal in all records of one packet.
const PACKET_ID: OptionCode = OptionCode(5);

/// The two interfaces, in the order of their descriptions.
#[derive(Clone, Copy)]
enum Interface {
    Before,
    After,
}

/// A capture file.
pub(super) struct PcapngFile {
    blocks: BufWriter<File>,
    begun: bool,
    /// Comments on changes, for the next packet.
    changes: Vec<String>,
}

impl PcapngFile {
    pub(super) fn new(file: File) -> Self {
        Self {
            blocks: BufWriter::with_capacity(1 << 16, file),
            begun: false,
            changes: Vec::new(),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        let program = concat!("posthaste ", env!("CARGO_PKG_VERSION"));
        let mut section = SectionHeaderBlock {
            block_type: 0,
            block_len1: 0,
            bom: 0,
            major_version: 0,
            minor_version: 0,
            section_len: -1,
            options: vec![option(OptionCode::ShbUserAppl, program.as_bytes())],
            block_len2: 0,
        };
        self.blocks
            .write_all(&section.to_vec().map_err(io::Error::other)?)?;
        for (name, comment) in [
            ("before", "packets as they came to the emulated link"),
            ("after", "packets as they were sent on"),
        ] {
            let comment = format!("{comment}; the first {HEAD} bytes of each");
            let mut interface = InterfaceDescriptionBlock {
                block_type: 0,
                block_len1: 0,
                linktype: Linktype::RAW,
                reserved: 0,
                snaplen: HEAD as u32,
                options: vec![
                    option(OptionCode::IfName, name.as_bytes()),
                    option(OptionCode::IfDescription, comment.as_bytes()),
                ],
                block_len2: 0,
                if_tsresol: NANOSECONDS,
                if_tsoffset: 0,
            };
            self.blocks
                .write_all(&interface.to_vec().map_err(io::Error::other)?)?;
        }
        Ok(())
    }

    fn packet(
        &mut self,
        packet: &DecodedPacket,
        interface: Interface,
        at: Instant,
    ) -> io::Result<()> {
        let head = packet.packet_record.head();
        let mut padded = head.to_vec();
        padded.resize(head.len().next_multiple_of(4), 0);
        let comment = comment(packet);
        let changes = std::mem::take(&mut self.changes);
        let id = packet_id(packet).to_le_bytes();
        let stamp = at.as_nanos();
        let mut block = EnhancedPacketBlock {
            block_type: 0,
            block_len1: 0,
            if_id: interface as u32,
            ts_high: (stamp >> 32) as u32,
            ts_low: stamp as u32,
            caplen: head.len() as u32,
            origlen: packet.packet_record.length,
            data: &padded,
            options: [&comment]
                .into_iter()
                .chain(&changes)
                .map(|comment| option(OptionCode::Comment, comment.as_bytes()))
                .chain([option(PACKET_ID, &id)])
                .collect(),
            block_len2: 0,
        };
        self.blocks
            .write_all(&block.to_vec().map_err(io::Error::other)?)
    }
}

impl TraceFormat for PcapngFile {
    fn write(&mut self, event: &PacketEvent) -> io::Result<()> {
        self.begin()?;
        match event {
            PacketEvent::Arrived(packet) if packet.packet_record.copy == 0 => {
                self.packet(packet, Interface::Before, event.time())
            }
            PacketEvent::Arrived(_) => Ok(()),
            PacketEvent::Delivered(packet) => self.packet(packet, Interface::After, event.time()),
        }
    }

    fn change(&mut self, applied: &AppliedChange) -> io::Result<()> {
        let (at, change) = (applied.at.since(Instant::ORIGIN), &applied.change);
        self.changes
            .push(format!("change of the links at {at}: {change}"));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.begin()?;
        if !self.changes.is_empty() {
            let comments = self.changes.iter();
            let options = comments.map(|comment| option(OptionCode::Comment, comment.as_bytes()));
            let mut statistics = InterfaceStatisticsBlock {
                block_type: 0,
                block_len1: 0,
                if_id: Interface::Before as u32,
                ts_high: 0,
                ts_low: 0,
                options: options.collect(),
                block_len2: 0,
            };
            self.blocks
                .write_all(&statistics.to_vec().map_err(io::Error::other)?)?;
        }
        self.blocks.flush()
    }
}

fn option(code: OptionCode, value: &[u8]) -> PcapNGOption<'_> {
    PcapNGOption {
        code,
        len: value.len() as u16,
        value: Cow::Borrowed(value),
    }
}

/// Equal for both records of a packet and for its copies. Made of connection, direction and position.
fn packet_id(packet: &DecodedPacket) -> u64 {
    let packet_record = &packet.packet_record;
    let up = packet_record.direction == Direction::Up;
    packet_record.connection << 40 | packet_record.position << 1 & ((1 << 40) - 1) | u64::from(!up)
}

/// Comment of a record: number, kind and fate of the packet.
fn comment(packet: &DecodedPacket) -> String {
    let packet_record = &packet.packet_record;
    let mut comment = format!(
        "connection {}, {} {}: {}",
        packet_record.connection, packet_record.direction, packet_record.position, packet.kind
    );
    if packet_record.copy > 0 {
        comment += &format!(", copy {}", packet_record.copy);
    }
    let sending = packet.tcp.as_ref().and_then(|tcp| tcp.sending);
    if let Some(sending) = sending {
        comment += &format!(", {}", sending.name());
    }
    match packet_record.fate {
        Fate::Dropped(reason) => comment += &format!("; dropped: {}", reason.name()),
        Fate::Delivered(marks) => {
            let stay = packet_record.left.saturating_since(packet_record.arrived);
            let late = packet_record.sent.saturating_since(packet_record.left);
            comment += &format!("; delivered after {stay}, sent {late} late");
            if marks.flipped > 0 {
                comment += &format!("; {} bits flipped, shown as it left", marks.flipped);
            }
            if marks.congested {
                comment += "; marked CE";
            }
            if marks.overtook || marks.held {
                comment += if marks.overtook {
                    "; overtook"
                } else {
                    "; held back"
                };
            }
        }
    }
    comment
}

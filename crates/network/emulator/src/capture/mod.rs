//! Captures in pcap and pcapng: connection, direction and TCP numbers of each packet.
//!
//! `posthaste_link::pattern::infer` derives losses and delays from them. [`trace`](crate::trace) writes captures of
//! runs.
//!
//! A frame passes four steps: `file` finds it and its time, `frame` its IP packet, `packet` the ends and numbers,
//! and `connections` the direction. `copies` removes frames that show a packet again. [`Remarks`] counts everything
//! that a step leaves out.
//!
//! ```no_run
//! use posthaste_emulator::capture::{Connections, read};
//!
//! let mut connections = Connections::default();
//! let file = std::fs::File::open("here.pcap")?;
//! let remarks = read(file, &mut connections, |packet| println!("{:?}", packet.seen))?;
//! println!("{} connections; {} frames were no IP", connections.count(), remarks.other);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connections;
mod copies;
mod file;
mod frame;
mod packet;

#[cfg(test)]
mod tests;

use std::io::Read;

use posthaste_link::pattern::infer::{ObservedPacket, PacketMark};
use thiserror::Error;

use self::copies::{ComparedFrame, Copies};
use self::file::{BlockContent, CapturedFrame, read_blocks};
use self::frame::FrameContent;
use self::packet::{DecodedPacket, Opens};

pub use self::connections::Connections;

/// Longest IP packet on Ethernet. The capturing machine joined longer ones.
const MTU: usize = 1500;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// Time, direction, connection and segment.
    pub seen: ObservedPacket,
    /// Everything that does not change on the way.
    pub mark: PacketMark,
    /// True for a SYN: the first of its connection, or the answer to it.
    pub opens: bool,
}

/// Remarks on a capture, in addition to its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Packets of the capture.
    pub packets: u64,
    /// Frames without an IP packet. Not read.
    pub other: u64,
    /// Frames that end before the end of their IP header, or with a damaged one. Not read.
    pub headless: u64,
    /// Frames of unsupported link types, and the first such type. Not read.
    pub unknown_link: Option<(i32, u64)>,
    /// Packets of an interface that the file does not describe. Not read.
    pub unknown_interface: u64,
    /// Further frames of a packet, from other interfaces of the host. Not read.
    pub copies: u64,
    /// Packets longer than Ethernet carries.
    pub joined: u64,
    /// TCP packets cut before their numbers. They count as packets, and their losses do not show.
    pub numberless: u64,
    /// Packets cut before the end of the bytes that enter their mark.
    pub short: u64,
    /// Fragments. They count as packets, and their losses do not show.
    pub fragments: u64,
    /// Other packets than TCP, fragments aside. They count as packets, and their losses do not show.
    pub no_tcp: u64,
    /// Packets without a time.
    pub untimed: u64,
    /// The file ends in the middle of a packet.
    pub cut_off: bool,
}

/// Error while reading a capture. A file that merely ends too early is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The file is not a capture.
    #[error("not a pcap or pcapng file: make one with `tcpdump -w FILE`")]
    NotACapture,
    /// A file without a byte.
    #[error(
        "empty: make a capture with `tcpdump -w FILE`, and stop it with Ctrl-C, so that it writes its last packets"
    )]
    Empty,
    /// The file ends within its header.
    #[error("ends within the header of the file: capture it again")]
    Header,
    /// A compressed file, with the program that unpacks it.
    #[error("compressed: unpack it with `{0}` first; only gzip is read as it is")]
    Compressed(&'static str),
    /// A trace of an emulated link.
    #[error(
        "a trace of `posthaste net`, which holds each packet before and after the link and is the capture of neither \
         end: capture within the command, with tcpdump"
    )]
    Trace,
    /// The system could not read it.
    #[error("reading it failed: is the disk all right?")]
    Reading,
    /// A packet or a block of the file is larger than a capture of packets can need.
    #[error("a packet of more than 1 MiB: capture it again")]
    Oversized,
    /// Lengths that contradict each other.
    #[error("damaged: capture it again, or repair it with `editcap`")]
    Damaged,
    /// Only frames of an unsupported link type.
    #[error(
        "captured on a link of type {0}, which is not read: capture on Ethernet or with `-i any`"
    )]
    Link(i32),
}

/// Reads a capture and passes each IP packet to `look`. Keeps at most 1 MiB of the capture in memory, the packets of
/// the last 100 ms, and a small state for each connection.
pub fn read(
    source: impl Read + Send,
    connections: &mut Connections,
    mut look: impl FnMut(&CapturedPacket),
) -> Result<Remarks, CaptureError> {
    let mut remarks = Remarks::default();
    let mut copies = Copies::default();
    connections.begin_capture();
    let cut_off = read_blocks(source, &mut |block| {
        let frame = match block {
            BlockContent::Frame(frame) => frame,
            BlockContent::UnknownInterface => return remarks.unknown_interface += 1,
            BlockContent::Nothing => return,
        };
        let Some(packet) = decode(&frame, &mut remarks) else {
            return;
        };
        if is_copy(&frame, &packet, &mut copies) {
            remarks.copies += 1;
            return;
        }
        remarks.count(&frame, &packet);
        let (connection, direction) = connections.assign(&packet);
        look(&CapturedPacket {
            seen: ObservedPacket {
                at: frame.at,
                direction,
                connection,
                segment: packet.segment,
            },
            mark: packet.mark,
            opens: packet.opens != Opens::Nothing,
        });
    })?;
    remarks.cut_off = cut_off;
    match remarks.unknown_link {
        Some((link, _)) if remarks.packets + remarks.other + remarks.headless == 0 => {
            Err(CaptureError::Link(link))
        }
        _ => Ok(remarks),
    }
}

/// The packet in a frame, or a remark.
fn decode(frame: &CapturedFrame<'_>, remarks: &mut Remarks) -> Option<DecodedPacket> {
    let packet = match frame::content(frame.link, frame.bytes) {
        FrameContent::Ip(bytes) => packet::decode(bytes),
        FrameContent::Short => None,
        FrameContent::Other => {
            remarks.other += 1;
            return None;
        }
        FrameContent::UnknownLink => {
            let (_, count) = remarks.unknown_link.get_or_insert((frame.link.0, 0));
            *count += 1;
            return None;
        }
    };
    remarks.headless += u64::from(packet.is_none());
    packet
}

/// True if an earlier frame has shown the packet. Without times, nothing is a copy.
fn is_copy(frame: &CapturedFrame<'_>, packet: &DecodedPacket, copies: &mut Copies) -> bool {
    let has_data = packet.segment.is_some_and(|segment| segment.length > 0);
    frame.at.is_some_and(|at| {
        copies.is_copy(&ComparedFrame {
            at,
            on: (frame.interface, frame::interface(frame.link, frame.bytes)),
            mark: packet.mark,
            is_distinct: packet.mark.id != 0 || has_data,
        })
    })
}

impl Remarks {
    fn count(&mut self, frame: &CapturedFrame<'_>, packet: &DecodedPacket) {
        self.packets += 1;
        self.joined += u64::from(packet.length > MTU);
        self.numberless += u64::from(packet.is_cut);
        self.short += u64::from(packet.mark.content.is_none());
        self.fragments += u64::from(packet.is_fragment);
        let is_tcp = packet.segment.is_some() || packet.is_cut;
        self.no_tcp += u64::from(!is_tcp && !packet.is_fragment);
        self.untimed += u64::from(frame.at.is_none());
    }
}

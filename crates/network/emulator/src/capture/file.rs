//! Capture files as frames: pcap and pcapng in both byte orders, plain or compressed by gzip.
//!
//! The crate pcap-parser reads blocks. It leaves obsolete packet blocks and the byte order of time offsets to its user.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, Linktype, OptionCode, PcapBlockOwned, PcapError,
    SectionHeaderBlock, SimplePacketBlock, create_reader,
};
use posthaste_units::Instant;

use super::CaptureError;

/// Bytes read at once, and the maximum size of one packet.
const BUFFER: usize = 1 << 20;
/// Bytes of the file header of pcap, the shorter one of both formats.
const FILE_HEADER: usize = 24;
/// Bytes read to recognise a file. The first block of a pcapng file must be complete within them.
const HEAD: u64 = 1 << 16;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// The obsolete packet block (draft-ietf-opsawg-pcapng, appendix A), and the bytes before its packet.
const PACKET_BLOCK: u32 = 2;
const PACKET_BLOCK_HEADER: usize = 20;
/// The low bits of a link type. The others state the length of a frame check sequence, which follows the packet
/// (draft-ietf-opsawg-pcap, section 4).
const LINK_TYPE: i32 = 0xffff;
const GZIP: &[u8] = &[0x1f, 0x8b];
/// First bytes of formats that are not read, with the program that unpacks them.
const COMPRESSED: [(&[u8], &str); 4] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    (&[0xfd, b'7', b'z', b'X'], "unxz"),
    (b"BZh", "bunzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "unlz4"),
];
/// Program in the traces of `posthaste net`.
const OWN_TRACE: &[u8] = b"posthaste ";

/// A captured frame.
#[derive(Debug)]
pub(super) struct CapturedFrame<'a> {
    /// Time of capture. `None` in blocks without one, and before 1970.
    pub at: Option<Instant>,
    pub link: Linktype,
    /// Number of the interface within the file.
    pub interface: u32,
    pub bytes: &'a [u8],
}

/// Content of a block.
pub(super) enum BlockContent<'a> {
    Frame(CapturedFrame<'a>),
    /// A packet of an interface that the file does not describe.
    UnknownInterface,
    Nothing,
}

/// Passes the content of each block to `look`. Returns true if the file ends in the middle of a packet.
pub(super) fn read_blocks(
    source: impl Read + Send,
    look: &mut dyn FnMut(BlockContent<'_>),
) -> Result<bool, CaptureError> {
    let (head, rest) = open(source)?;
    if head.is_empty() {
        return Err(CaptureError::Empty);
    }
    if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(CaptureError::Compressed(program));
    }
    if !head.starts_with(GZIP) {
        return read_plain(head, rest, look);
    }
    let mut unpacked = Unpacked {
        inner: MultiGzDecoder::new(Cursor::new(head).chain(rest)),
        state: Unpacking::Whole,
    };
    let (head, rest) = open(&mut unpacked)?;
    let done = if head.is_empty() {
        Err(CaptureError::Empty)
    } else {
        read_plain(head, rest, look)
    };
    match unpacked.state {
        Unpacking::Damaged => Err(CaptureError::Damaged),
        Unpacking::CutOff => done.map(|_| true),
        Unpacking::Whole => done,
    }
}

/// Reads the first bytes, as many as there are, since a pipe delivers few at a time.
fn open<R: Read + Send>(mut source: R) -> Result<(Vec<u8>, R), CaptureError> {
    let mut head = Vec::new();
    (source.by_ref().take(HEAD).read_to_end(&mut head)).map_err(|_| CaptureError::Reading)?;
    Ok((head, source))
}

/// Reader of a compressed capture. Its end may be missing, as that of any capture.
struct Unpacked<R: Read> {
    inner: MultiGzDecoder<R>,
    state: Unpacking,
}

enum Unpacking {
    Whole,
    CutOff,
    Damaged,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(into) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.state = Unpacking::CutOff;
                Ok(0)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                self.state = Unpacking::Damaged;
                Ok(0)
            }
            done => done,
        }
    }
}

fn read_plain(
    head: Vec<u8>,
    rest: impl Read + Send,
    look: &mut dyn FnMut(BlockContent<'_>),
) -> Result<bool, CaptureError> {
    let length = head.len();
    let source = Cursor::new(head).chain(rest);
    let mut reader = create_reader(BUFFER, source).map_err(|error| match error {
        PcapError::ReadError => CaptureError::Reading,
        PcapError::Incomplete(_) if length < FILE_HEADER => CaptureError::Header,
        _ => CaptureError::NotACapture,
    })?;
    let mut formats = Formats::default();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                look(formats.content(&block)?);
                reader.consume(used);
            }
            Err(PcapError::Eof) => return Ok(false),
            Err(PcapError::Incomplete(_)) => {
                // A pipe delivers a little at a time. Only its end says that no more will come.
                let before = reader.data().len();
                reader.refill().map_err(|_| CaptureError::Reading)?;
                if reader.data().len() == before && !reader.reader_exhausted() {
                    return Err(CaptureError::Oversized);
                }
            }
            Err(PcapError::UnexpectedEof) => return Ok(true),
            Err(PcapError::BufferTooSmall) => return Err(CaptureError::Oversized),
            Err(_) => return Err(CaptureError::Damaged),
        }
    }
}

/// Link types and clocks of the file.
#[derive(Default)]
struct Formats {
    /// Link type and nanoseconds in a unit of time, of a pcap file.
    legacy: Option<(Linktype, u64)>,
    big_endian: bool,
    interfaces: Vec<CapturedInterface>,
}

/// An interface of a pcapng file.
#[derive(Clone, Copy)]
struct CapturedInterface {
    link: Linktype,
    /// Units of time in a second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
    /// Maximum length of a captured frame; 0 without a limit.
    snap_length: usize,
}

impl Formats {
    /// The content of a block. Notes the formats that it states.
    fn content<'a>(
        &mut self,
        block: &'a PcapBlockOwned<'_>,
    ) -> Result<BlockContent<'a>, CaptureError> {
        Ok(match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let unit = if header.is_nanosecond_precision() {
                    1
                } else {
                    1000
                };
                self.legacy = Some((plain(header.network), unit));
                BlockContent::Nothing
            }
            PcapBlockOwned::Legacy(packet) => {
                let Some((link, unit)) = self.legacy else {
                    return Ok(BlockContent::UnknownInterface);
                };
                let fraction = u64::from(packet.ts_usec) * unit;
                let nanos = u64::from(packet.ts_sec) * NANOS_PER_SECOND + fraction;
                BlockContent::Frame(CapturedFrame {
                    at: Some(Instant::from_nanos(nanos)),
                    link,
                    interface: 0,
                    bytes: packet.data,
                })
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                if is_own_trace(section) {
                    return Err(CaptureError::Trace);
                }
                self.big_endian = section.big_endian();
                self.interfaces.clear();
                BlockContent::Nothing
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                self.interfaces.push(self.interface(interface));
                BlockContent::Nothing
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let bytes = first_bytes(packet.data, packet.caplen);
                self.frame(packet.if_id, Some((packet.ts_high, packet.ts_low)), bytes)
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => self.simple(packet),
            PcapBlockOwned::NG(Block::Unknown(unknown)) => {
                let order = [unknown.block_type, unknown.block_type.swap_bytes()];
                match order[usize::from(self.big_endian)] {
                    PACKET_BLOCK => self.obsolete(unknown.data),
                    _ => BlockContent::Nothing,
                }
            }
            PcapBlockOwned::NG(_) => BlockContent::Nothing,
        })
    }

    fn interface(&self, block: &InterfaceDescriptionBlock<'_>) -> CapturedInterface {
        let mut options = block.options.iter();
        // pcap-parser reads the offset as little-endian in any file.
        let offset = options
            .find(|option| option.code == OptionCode::IfTsoffset)
            .and_then(|option| option.as_bytes().ok()?.try_into().ok())
            .map_or(0, |bytes| {
                if self.big_endian {
                    i64::from_be_bytes(bytes)
                } else {
                    i64::from_le_bytes(bytes)
                }
            });
        CapturedInterface {
            link: plain(block.linktype),
            resolution: block.ts_resolution().unwrap_or(1_000_000).max(1),
            offset,
            snap_length: block.snaplen as usize,
        }
    }

    fn frame<'a>(
        &self,
        interface: u32,
        stamp: Option<(u32, u32)>,
        bytes: &'a [u8],
    ) -> BlockContent<'a> {
        let Some(description) = self.interfaces.get(interface as usize) else {
            return BlockContent::UnknownInterface;
        };
        BlockContent::Frame(CapturedFrame {
            at: stamp.and_then(|(high, low)| description.time(high, low)),
            link: description.link,
            interface,
            bytes,
        })
    }

    /// A packet without a time, of the first interface.
    fn simple<'a>(&self, packet: &'a SimplePacketBlock<'_>) -> BlockContent<'a> {
        let bytes = packet.packet_data();
        let limit = self.interfaces.first().map(|first| first.snap_length);
        let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        self.frame(0, None, &bytes[..bytes.len().min(limit)])
    }

    fn obsolete<'a>(&self, block: &'a [u8]) -> BlockContent<'a> {
        let Some((header, rest)) = block.split_at_checked(PACKET_BLOCK_HEADER) else {
            return BlockContent::UnknownInterface;
        };
        let number = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if self.big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let interface = if self.big_endian {
            u16::from_be_bytes([header[0], header[1]])
        } else {
            u16::from_le_bytes([header[0], header[1]])
        };
        let stamp = Some((number(4), number(8)));
        self.frame(u32::from(interface), stamp, first_bytes(rest, number(12)))
    }
}

impl CapturedInterface {
    fn time(&self, high: u32, low: u32) -> Option<Instant> {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let nanos = ticks * u128::from(NANOS_PER_SECOND) / u128::from(self.resolution);
        let offset = i128::from(self.offset) * i128::from(NANOS_PER_SECOND);
        let nanos = i128::try_from(nanos).ok()?.checked_add(offset)?;
        u64::try_from(nanos).ok().map(Instant::from_nanos)
    }
}

/// The link type alone.
fn plain(link: Linktype) -> Linktype {
    Linktype(link.0 & LINK_TYPE)
}

fn first_bytes(bytes: &[u8], length: u32) -> &[u8] {
    &bytes[..bytes.len().min(length as usize)]
}

/// True for a trace of `posthaste net`, which has each packet before and after the link.
fn is_own_trace(section: &SectionHeaderBlock<'_>) -> bool {
    let mut options = section.options.iter();
    options.any(|option| {
        let value = option.as_bytes().unwrap_or_default();
        option.code == OptionCode::ShbUserAppl && value.starts_with(OWN_TRACE)
    })
}

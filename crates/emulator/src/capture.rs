//! Captures as pcap and pcapng files: whose packets they are, which way they went, what TCP says.
//!
//! What losses and delays follow from it is left to `posthaste_link::pattern::infer`; captures of
//! runs are written by [`trace`](crate::trace).
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

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::io::Read;
use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use posthaste_link::Direction;
use posthaste_link::pattern::infer::{Seen, Segment};
use posthaste_units::Instant;
use thiserror::Error;

/// What is read at once, and the most that one packet may take.
const BUFFER: usize = 1 << 20;
/// Longest IP packet on Ethernet: what is longer was joined by the machine that captured it.
const MTU: usize = 1500;
/// Bytes of a packet's content that tell it from others.
const MARKED: usize = 96;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What is known of it.
    pub seen: Seen,
    /// Made of everything that does not change on the way.
    pub mark: u64,
}

/// What stood in a capture beside the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Frames that hold no IP packet.
    pub other: u64,
    /// Packets longer than Ethernet carries.
    pub joined: u64,
    /// The file ends in the middle of a packet.
    pub cut_off: bool,
}

/// Who is client in which connection; shared by the captures of both ends.
#[derive(Debug, Default)]
pub struct Connections {
    known: HashMap<(End, End, u8), Connection>,
    count: u64,
}

type End = (IpAddr, u16);

#[derive(Clone, Copy, Debug)]
struct Connection {
    number: u64,
    client: End,
    /// The sequence number of the SYN, where one was seen.
    opened: Option<u32>,
}

/// Why a capture could not be read to its end. A file that merely ends too early is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// It begins with something else.
    #[error("not a pcap or pcapng file: make one with `tcpdump -w FILE`")]
    NotACapture,
    /// The system.
    #[error("reading it failed: is the disk all right?")]
    Reading,
    /// One packet, or what the file says of itself, is longer than a capture of packets can need.
    #[error("a packet of more than 1 MiB: capture it again")]
    Oversized,
    /// Lengths that contradict each other.
    #[error("damaged: capture it again, or repair it with `editcap`")]
    Damaged,
    /// Frames of another kind of network.
    #[error(
        "captured on a link of type {0}, which is not read: capture on Ethernet or with `-i any`"
    )]
    Link(i32),
}

/// Goes through a capture; `look` gets each IP packet. At most 1 MiB of it is in memory at once,
/// beside a little for each connection.
pub fn read(
    source: impl Read + Send,
    connections: &mut Connections,
    mut look: impl FnMut(&Packet),
) -> Result<Remarks, CaptureError> {
    let mut reader = create_reader(BUFFER, source).map_err(|error| match error {
        PcapError::ReadError => CaptureError::Reading,
        _ => CaptureError::NotACapture,
    })?;
    let mut remarks = Remarks::default();
    let mut clocks = Clocks::default();
    let mut starved = false;
    loop {
        match reader.next() {
            Ok((used, block)) => {
                starved = false;
                if let Some((at, link, frame)) = clocks.frame(&block) {
                    match decode(link, frame)? {
                        Some(decoded) => {
                            remarks.joined += u64::from(decoded.length > MTU);
                            look(&connections.place(at, &decoded));
                        }
                        None => remarks.other += 1,
                    }
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) if !starved => {
                starved = true;
                reader.refill().map_err(|_| CaptureError::Reading)?;
            }
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => {
                remarks.cut_off = true;
                break;
            }
            Err(PcapError::BufferTooSmall) => return Err(CaptureError::Oversized),
            Err(_) => return Err(CaptureError::Damaged),
        }
    }
    Ok(remarks)
}

/// What the file says of link types and clocks.
#[derive(Default)]
struct Clocks {
    legacy: Option<(Linktype, u64)>,
    interfaces: Vec<(Linktype, u64, i64)>,
}

impl Clocks {
    /// The frame in a block, if it holds one.
    fn frame<'a>(
        &mut self,
        block: &'a PcapBlockOwned<'_>,
    ) -> Option<(Instant, Linktype, &'a [u8])> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let unit = if header.is_nanosecond_precision() {
                    1
                } else {
                    1000
                };
                self.legacy = Some((header.network, unit));
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let (link, unit) = self.legacy?;
                let fraction = u64::from(packet.ts_usec) * unit;
                let nanos = u64::from(packet.ts_sec) * NANOS_PER_SECOND + fraction;
                Some((Instant::from_nanos(nanos), link, packet.data))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let resolution = interface.ts_resolution().unwrap_or(1_000_000);
                let clock = (interface.linktype, resolution.max(1), interface.ts_offset());
                self.interfaces.push(clock);
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let (link, resolution, offset) = *self.interfaces.get(packet.if_id as usize)?;
                let ticks = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                let nanos = ticks * u128::from(NANOS_PER_SECOND) / u128::from(resolution);
                let offset = i128::from(offset) * i128::from(NANOS_PER_SECOND);
                let nanos = i128::try_from(nanos).ok()?.checked_add(offset)?;
                let at = Instant::from_nanos(u64::try_from(nanos).ok()?);
                let length = packet.data.len().min(packet.caplen as usize);
                Some((at, link, &packet.data[..length]))
            }
            PcapBlockOwned::NG(_) => None,
        }
    }
}

/// An IP packet's ends and content.
struct Decoded {
    source: End,
    destination: End,
    protocol: u8,
    /// Of the IP packet, as its header says.
    length: usize,
    segment: Option<Segment>,
    opens: Opens,
    mark: u64,
}

/// What a packet says about who began.
#[derive(Clone, Copy, PartialEq)]
enum Opens {
    Nothing,
    ByClient(u32),
    ByServer,
}

/// The IP packet in a frame; `None` where there is none. An unknown kind of link is an error.
fn decode(link: Linktype, frame: &[u8]) -> Result<Option<Decoded>, CaptureError> {
    let behind = |bytes: usize| frame.get(bytes..).unwrap_or_default();
    let packet = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(frame).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(frame).ok(),
        Linktype::NULL | Linktype::LOOP => LaxSlicedPacket::from_ip(behind(4)).ok(),
        Linktype::LINUX_SLL => LaxSlicedPacket::from_ip(behind(16)).ok(),
        Linktype::LINUX_SLL2 => LaxSlicedPacket::from_ip(behind(20)).ok(),
        Linktype(other) => return Err(CaptureError::Link(other)),
    };
    Ok(packet.as_ref().and_then(content))
}

fn content(packet: &LaxSlicedPacket<'_>) -> Option<Decoded> {
    let net = packet.net.as_ref()?;
    let payload = net.ip_payload_ref()?;
    let captured = payload.payload.len();
    let (ends, header, said, id): ((IpAddr, IpAddr), usize, usize, u16) = match net {
        LaxNetSlice::Ipv4(ip) => {
            let ip = ip.header();
            let header = usize::from(ip.ihl()) * 4;
            let ends = (ip.source_addr().into(), ip.destination_addr().into());
            (
                ends,
                header,
                usize::from(ip.total_len()),
                ip.identification(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let said = usize::from(ip.header().payload_length());
            let extensions = ip.extensions().slice().len();
            let ends = (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
            );
            let said = if said == 0 { 0 } else { said + 40 };
            (ends, 40 + extensions, said, 0)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    // Offloading may leave the length out; then what was captured is all there is to go by.
    let length = if said == 0 { header + captured } else { said };
    let ports = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        _ => (0, 0),
    };
    let (segment, opens) = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            (Some(segment(tcp, length - header.min(length))), opens(tcp))
        }
        _ => (None, Opens::Nothing),
    };
    let protocol = payload.ip_number.0;
    let source = (ends.0, ports.0);
    let destination = (ends.1, ports.1);
    let mut mark = DefaultHasher::new();
    (source, destination, protocol, id, length).hash(&mut mark);
    // A checksum may be filled in after the sender's capture.
    let checksum = match packet.transport {
        Some(TransportSlice::Tcp(_)) => 16..18,
        Some(TransportSlice::Udp(_)) => 6..8,
        _ => 0..0,
    };
    for (index, byte) in payload.payload.iter().take(MARKED).enumerate() {
        if !checksum.contains(&index) {
            byte.hash(&mut mark);
        }
    }
    Some(Decoded {
        source,
        destination,
        protocol,
        length,
        segment,
        opens,
        mark: mark.finish(),
    })
}

/// `bytes` is the length of the segment with its header.
fn segment(tcp: &TcpSlice<'_>, bytes: usize) -> Segment {
    let payload = bytes.saturating_sub(usize::from(tcp.data_offset()) * 4);
    let flags = u32::from(tcp.syn()) + u32::from(tcp.fin());
    Segment {
        sequence: tcp.sequence_number(),
        length: u32::try_from(payload)
            .unwrap_or(u32::MAX)
            .saturating_add(flags),
        acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
    }
}

fn opens(tcp: &TcpSlice<'_>) -> Opens {
    match (tcp.syn(), tcp.ack()) {
        (true, false) => Opens::ByClient(tcp.sequence_number()),
        (true, true) => Opens::ByServer,
        _ => Opens::Nothing,
    }
}

impl Connections {
    /// Which connection a packet belongs to and which way it goes.
    ///
    /// The client is who sends the SYN; without one, who has the higher port, or else who is seen
    /// first.
    fn place(&mut self, at: Instant, packet: &Decoded) -> Packet {
        let (source, destination) = (packet.source, packet.destination);
        let key = (
            source.min(destination),
            source.max(destination),
            packet.protocol,
        );
        let known = self
            .known
            .get(&key)
            .copied()
            .filter(|known| match packet.opens {
                Opens::ByClient(sequence) => known.opened.is_none_or(|opened| opened == sequence),
                _ => true,
            });
        let connection = known.unwrap_or_else(|| {
            self.count += 1;
            let client = match packet.opens {
                Opens::ByClient(_) => source,
                Opens::ByServer => destination,
                Opens::Nothing if destination.1 > source.1 => destination,
                Opens::Nothing => source,
            };
            let opened = match packet.opens {
                Opens::ByClient(sequence) => Some(sequence),
                _ => None,
            };
            let connection = Connection {
                number: self.count,
                client,
                opened,
            };
            self.known.insert(key, connection);
            connection
        });
        let direction = match connection.client == source {
            true => Direction::Up,
            false => Direction::Down,
        };
        Packet {
            seen: Seen {
                at,
                direction,
                connection: connection.number,
                segment: packet.segment,
            },
            mark: packet.mark,
        }
    }

    /// How many connections have been seen.
    pub fn count(&self) -> u64 {
        self.count
    }
}

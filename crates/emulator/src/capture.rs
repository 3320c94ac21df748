//! Reads captures in pcap and pcapng: connection, direction and TCP numbers of each packet.
//!
//! `posthaste_link::pattern::infer` derives losses and delays from them. [`trace`](crate::trace) writes captures of
//! runs.
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
use posthaste_link::pattern::infer::{ObservedPacket, ObservedSegment};
use posthaste_units::Instant;
use thiserror::Error;

/// Bytes read at once, and the maximum size of one packet.
const BUFFER: usize = 1 << 20;
/// Longest IP packet on Ethernet. The capturing machine joined longer ones.
const MTU: usize = 1500;
/// Bytes of a packet's content that enter its mark.
const MARKED: usize = 96;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// Time, direction, connection and segment.
    pub seen: ObservedPacket,
    /// Hash of everything that does not change on the way.
    pub mark: u64,
    /// True for a SYN: the first of its connection, or the answer to it.
    pub opens: bool,
}

/// Remarks on a capture, in addition to its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Frames without an IP packet.
    pub other: u64,
    /// Packets longer than Ethernet carries.
    pub joined: u64,
    /// Packets cut short before the end of the bytes that enter their mark.
    pub short: u64,
    /// The file ends in the middle of a packet.
    pub cut_off: bool,
}

/// The connections of a capture, with the client of each. Shared by the captures of both ends.
///
/// A SYN with another sequence number begins another connection between the same ends. It is the same connection in
/// each capture.
#[derive(Debug, Default)]
pub struct Connections {
    between: HashMap<Ends, Between>,
    /// Connections known from their beginning, by the sequence number of the SYN.
    begun: HashMap<(Ends, u32), CapturedConnection>,
    count: u64,
    /// Captures begun so far.
    captures: u64,
}

type End = (IpAddr, u16);
/// The smaller end, the larger end, and the protocol.
type Ends = (End, End, u8);

/// Successive connections between two ends.
#[derive(Clone, Copy, Debug)]
struct Between {
    first: CapturedConnection,
    /// Connection of the last packet, and the capture that held it.
    last: CapturedConnection,
    capture: u64,
}

#[derive(Clone, Copy, Debug)]
struct CapturedConnection {
    number: u64,
    client: End,
    /// True if its beginning was seen.
    begun: bool,
}

/// Error while reading a capture. A file that merely ends too early is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The file is not a capture.
    #[error("not a pcap or pcapng file: make one with `tcpdump -w FILE`")]
    NotACapture,
    /// The system could not read it.
    #[error("reading it failed: is the disk all right?")]
    Reading,
    /// A packet or a block of the file is larger than a capture of packets can need.
    #[error("a packet of more than 1 MiB: capture it again")]
    Oversized,
    /// Lengths that contradict each other.
    #[error("damaged: capture it again, or repair it with `editcap`")]
    Damaged,
    /// Frames of an unsupported link type.
    #[error(
        "captured on a link of type {0}, which is not read: capture on Ethernet or with `-i any`"
    )]
    Link(i32),
}

/// Reads a capture and passes each IP packet to `look`. Keeps at most 1 MiB of the capture in memory, and a small state
/// for each connection.
pub fn read(
    source: impl Read + Send,
    connections: &mut Connections,
    mut look: impl FnMut(&CapturedPacket),
) -> Result<Remarks, CaptureError> {
    let mut reader = create_reader(BUFFER, source).map_err(|error| match error {
        PcapError::ReadError => CaptureError::Reading,
        _ => CaptureError::NotACapture,
    })?;
    let mut remarks = Remarks::default();
    let mut clocks = Clocks::default();
    connections.begin_capture();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                if let Some((at, link, frame)) = clocks.frame(&block) {
                    match decode(link, frame)? {
                        Some(decoded) => {
                            remarks.joined += u64::from(decoded.length > MTU);
                            remarks.short += u64::from(decoded.short);
                            look(&connections.place(at, &decoded));
                        }
                        None => remarks.other += 1,
                    }
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => {
                // A pipe delivers a little at a time. Only its end says that no more will come.
                let before = reader.data().len();
                reader.refill().map_err(|_| CaptureError::Reading)?;
                if reader.data().len() == before && !reader.reader_exhausted() {
                    return Err(CaptureError::Oversized);
                }
            }
            Err(PcapError::UnexpectedEof) => {
                remarks.cut_off = true;
                break;
            }
            Err(PcapError::BufferTooSmall) => return Err(CaptureError::Oversized),
            Err(_) => return Err(CaptureError::Damaged),
        }
    }
    Ok(remarks)
}

/// Link types and clocks of the file.
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

/// Ends and content of an IP packet.
struct Decoded {
    source: End,
    destination: End,
    protocol: u8,
    /// Length of the IP packet according to its header.
    length: usize,
    segment: Option<ObservedSegment>,
    opens: Opens,
    mark: u64,
    /// The capture lacks some of the bytes that enter the mark.
    short: bool,
}

/// Evidence in a packet of the end that opened the connection.
#[derive(Clone, Copy, PartialEq)]
enum Opens {
    Nothing,
    /// The SYN, with its sequence number.
    ByClient(u32),
    /// The answer to the SYN with this sequence number.
    ByServer(u32),
}

/// The IP packet in a frame; `None` if it holds none. An unknown link type is an error.
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
    // Offloading may omit the length. The captured bytes are then the only evidence.
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
        short: captured < MARKED && header + captured < length,
    })
}

/// Reads the TCP header. `bytes` is the length of the segment with its header.
fn segment(tcp: &TcpSlice<'_>, bytes: usize) -> ObservedSegment {
    let payload = bytes.saturating_sub(usize::from(tcp.data_offset()) * 4);
    let flags = u32::from(tcp.syn()) + u32::from(tcp.fin());
    ObservedSegment {
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
        (true, true) => Opens::ByServer(tcp.acknowledgment_number().wrapping_sub(1)),
        _ => Opens::Nothing,
    }
}

impl Connections {
    /// Begins another capture.
    fn begin_capture(&mut self) {
        self.captures += 1;
    }

    /// Assigns a packet to its connection and direction.
    ///
    /// The client is the sender of the SYN. Without a SYN it is the end with the higher port, or else the first sender
    /// seen.
    fn place(&mut self, at: Instant, packet: &Decoded) -> CapturedPacket {
        let (source, destination) = (packet.source, packet.destination);
        let ends = (
            source.min(destination),
            source.max(destination),
            packet.protocol,
        );
        let connection = self
            .known(&ends, packet.opens)
            .unwrap_or_else(|| self.begin(ends, packet));
        debug_assert!(
            (1..=self.count).contains(&connection.number),
            "a connection without a number"
        );
        let last = Between {
            first: connection,
            last: connection,
            capture: self.captures,
        };
        let between = self.between.entry(ends).or_insert(last);
        *between = Between {
            first: between.first,
            ..last
        };
        let direction = match connection.client == source {
            true => Direction::Up,
            false => Direction::Down,
        };
        CapturedPacket {
            seen: ObservedPacket {
                at,
                direction,
                connection: connection.number,
                segment: packet.segment,
            },
            mark: packet.mark,
            opens: packet.opens != Opens::Nothing,
        }
    }

    /// The known connection of a packet between these ends, unless the packet begins a new one.
    fn known(&mut self, ends: &Ends, opens: Opens) -> Option<CapturedConnection> {
        let between = self.between.get(ends);
        let is_new_here = between.is_some_and(|between| between.capture != self.captures);
        let Opens::ByClient(sequence) = opens else {
            // Another capture of the same traffic begins with the same connection, or not much later.
            return between.map(|between| match is_new_here {
                true => between.first,
                false => between.last,
            });
        };
        if let Some(known) = self.begun.get(&(*ends, sequence)) {
            return Some(*known);
        }
        // The other capture began in the middle of this connection.
        let first = between.map(|between| between.first);
        let first = first.filter(|first| is_new_here && !first.begun)?;
        self.begun.insert((*ends, sequence), first);
        Some(first)
    }

    fn begin(&mut self, ends: Ends, packet: &Decoded) -> CapturedConnection {
        self.count += 1;
        let (client, begun) = match packet.opens {
            Opens::ByClient(sequence) => (packet.source, Some(sequence)),
            Opens::ByServer(sequence) => (packet.destination, Some(sequence)),
            Opens::Nothing if packet.destination.1 > packet.source.1 => (packet.destination, None),
            Opens::Nothing => (packet.source, None),
        };
        let connection = CapturedConnection {
            number: self.count,
            client,
            begun: begun.is_some(),
        };
        if let Some(sequence) = begun {
            self.begun.insert((ends, sequence), connection);
        }
        connection
    }

    /// Connections seen so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Span;

    const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
    const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

    /// Number and direction of each packet of a capture. Packets from the client go up.
    fn placed(
        connections: &mut Connections,
        packets: &[(Direction, Opens)],
    ) -> Vec<(u64, Direction)> {
        connections.begin_capture();
        let end = |(address, port): ([u8; 4], u16)| (IpAddr::from(address), port);
        let place = |&(direction, opens): &(Direction, Opens)| {
            let (source, destination) = match direction {
                Direction::Up => (end(CLIENT), end(SERVER)),
                Direction::Down => (end(SERVER), end(CLIENT)),
            };
            let packet = Decoded {
                source,
                destination,
                protocol: 6,
                length: 40,
                segment: None,
                opens,
                mark: 0,
                short: false,
            };
            let seen = connections.place(Instant::ORIGIN, &packet).seen;
            (seen.connection, seen.direction)
        };
        packets.iter().map(place).collect()
    }

    fn numbers(connections: &mut Connections, packets: &[(Direction, Opens)]) -> Vec<u64> {
        let placed = placed(connections, packets);
        placed.into_iter().map(|(number, _)| number).collect()
    }

    const DATA: Opens = Opens::Nothing;

    fn syn(sequence: u32) -> (Direction, Opens) {
        (Direction::Up, Opens::ByClient(sequence))
    }

    #[test]
    fn ports_used_again_are_the_same_connections_in_both_captures() {
        let mut connections = Connections::default();
        let packets = [
            syn(7),
            (Direction::Down, Opens::ByServer(7)),
            (Direction::Up, DATA),
            syn(9),
            syn(9),
            (Direction::Down, DATA),
        ];
        for _ in 0..2 {
            let found = numbers(&mut connections, &packets);
            assert_eq!(found, [1, 1, 1, 2, 2, 2]);
        }
        // A capture that begins later also begins with the first connection.
        assert_eq!(numbers(&mut connections, &packets[2..]), [1, 2, 2, 2]);
        assert_eq!(connections.count(), 2);
    }

    #[test]
    fn a_capture_that_begins_in_the_middle_ends_with_the_next_syn() {
        let mut connections = Connections::default();
        let middle = [(Direction::Down, DATA), syn(9), (Direction::Up, DATA)];
        let found = placed(&mut connections, &middle);
        assert_eq!(
            found,
            [(1, Direction::Down), (2, Direction::Up), (2, Direction::Up)]
        );
        // The other capture contains its beginning.
        let whole = [syn(7), (Direction::Down, DATA), syn(9)];
        assert_eq!(numbers(&mut connections, &whole), [1, 1, 2]);
        // Without the SYN, its answer identifies the connection.
        let mut connections = Connections::default();
        let answered = [(Direction::Down, Opens::ByServer(7)), syn(7), syn(8)];
        assert_eq!(numbers(&mut connections, &answered), [1, 1, 2]);
    }

    /// Delivers a few bytes at a time, as a pipe does.
    struct TricklingReader<'a>(&'a [u8]);

    impl Read for TricklingReader<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let length = into.len().min(100).min(self.0.len());
            let (now, later) = self.0.split_at(length);
            into[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    /// A capture of raw IPv4 packets of 1,000 bytes, one a second.
    fn pcap(packets: u32) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0x03, 0xe8, 0, 0, 0, 0, 64, 253, 0, 0];
        packet.extend(CLIENT.0);
        packet.extend(SERVER.0);
        packet.resize(1000, 0);
        let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0]);
        file.extend([0; 8]);
        file.extend(65_535_u32.to_le_bytes());
        file.extend(101_u32.to_le_bytes());
        for second in 0..packets {
            for field in [second, 0, 1000, 1000] {
                file.extend(field.to_le_bytes());
            }
            file.extend(&packet);
        }
        file
    }

    #[test]
    fn a_capture_from_a_pipe_is_read_to_its_end() {
        let file = pcap(5);
        for (length, expected) in [(file.len(), (5, false)), (file.len() - 7, (4, true))] {
            let mut times = Vec::new();
            let mut connections = Connections::default();
            let remarks = read(
                TricklingReader(&file[..length]),
                &mut connections,
                |packet| {
                    times.push(packet.seen.at);
                },
            );
            let remarks = remarks.unwrap();
            assert_eq!((times.len(), remarks.cut_off), expected);
            assert_eq!(times[3], Instant::ORIGIN + Span::from_secs(3));
        }
    }
}

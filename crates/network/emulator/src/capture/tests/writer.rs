//! Packets of a download, and writers of capture files in every form.

use std::net::IpAddr;

pub(super) const SYN: u8 = 2;
pub(super) const ACK: u8 = 16;
const FIN: u8 = 1;

/// Payload of each segment of data.
const SIZE: usize = 1000;
const NANOS: u64 = 1_000_000_000;

pub(super) type Address = (IpAddr, u16);

/// A packet and its time in nanoseconds since 1970.
pub(super) type Timed = (u64, Vec<u8>);

/// TCP fields of a packet: sequence number, acknowledgement number, flags, bytes of payload.
pub(super) type Fields = (u32, u32, u8, usize);

pub(super) fn client(is_v6: bool) -> Address {
    end(is_v6, 1, 40_000)
}

pub(super) fn server(is_v6: bool) -> Address {
    end(is_v6, 2, 80)
}

fn end(is_v6: bool, host: u8, port: u16) -> Address {
    let address = if is_v6 {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)])
    } else {
        IpAddr::from([10, 0, 0, host])
    };
    (address, port)
}

/// An IP packet with this content. The identification is for IPv4.
pub(super) fn ip(from: IpAddr, to: IpAddr, protocol: u8, id: u16, content: &[u8]) -> Vec<u8> {
    fragment(from, to, protocol, id, 0x4000, content)
}

/// An IPv4 packet with these flags and offset of a fragment, or an IPv6 packet.
pub(super) fn fragment(
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    id: u16,
    flags: u16,
    content: &[u8],
) -> Vec<u8> {
    let mut packet = Vec::new();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + content.len() as u16).to_be_bytes());
            packet.extend(id.to_be_bytes());
            packet.extend(flags.to_be_bytes());
            packet.extend([64, protocol, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend((content.len() as u16).to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => unreachable!("both ends have addresses of one version"),
    }
    packet.extend(content);
    packet
}

/// A TCP packet with a timestamp option of 12 bytes, or without.
pub(super) fn tcp(
    from: Address,
    to: Address,
    id: u16,
    fields: Fields,
    stamp: Option<u32>,
) -> Vec<u8> {
    let (sequence, acknowledges, flags, payload) = fields;
    let mut segment = Vec::new();
    segment.extend(from.1.to_be_bytes());
    segment.extend(to.1.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledges.to_be_bytes());
    let header_words = if stamp.is_some() { 8 } else { 5 };
    segment.extend([header_words << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    if let Some(stamp) = stamp {
        segment.extend([1, 1, 8, 10]);
        segment.extend(stamp.to_be_bytes());
        segment.extend([0; 4]);
    }
    segment.extend(vec![7; payload]);
    ip(from.0, to.0, 6, id, &segment)
}

/// A download of ten segments as captured at the client. The server's eighth packet, the sixth segment, is lost once.
pub(super) fn download(is_v6: bool) -> Vec<Timed> {
    let (client, server) = (client(is_v6), server(is_v6));
    let mut packets: Vec<Timed> = Vec::new();
    let mut ids = [0u16; 2];
    let mut push = |micros: u64, is_up: bool, fields: Fields, arrives: bool| {
        let way = usize::from(is_up);
        ids[way] += 1;
        let stamp = Some(micros as u32 / 1000);
        let packet = if is_up {
            tcp(client, server, ids[way], fields, stamp)
        } else {
            tcp(server, client, 1000 + ids[way], fields, stamp)
        };
        if arrives {
            packets.push((1_700_000_000 * NANOS + micros * 1000, packet));
        }
    };
    let byte = |n: u32| 501 + n * SIZE as u32;
    push(0, true, (100, 0, SYN, 0), true);
    push(50_000, false, (500, 101, SYN | ACK, 0), true);
    push(50_100, true, (101, 501, ACK, 0), true);
    push(50_200, true, (101, 501, ACK, 100), true);
    push(100_200, false, (501, 201, ACK, 0), true);
    for n in 0..10 {
        let at = 120_000 + u64::from(n) * 1000;
        push(at, false, (byte(n), 201, ACK, SIZE), n != 5);
        if n != 5 {
            push(
                at + 100,
                true,
                (201, byte(n.min(4) + u32::from(n < 5)), ACK, 0),
                true,
            );
        }
    }
    push(180_000, false, (byte(5), 201, ACK, SIZE), true);
    push(180_100, true, (201, byte(10), ACK, 0), true);
    push(181_000, false, (byte(10), 201, ACK | FIN, 0), true);
    push(181_100, true, (201, byte(10) + 1, ACK | FIN, 0), true);
    push(231_100, false, (byte(10) + 1, 202, ACK, 0), true);
    packets
}

/// Form of a capture file.
#[derive(Clone, Copy)]
pub(super) struct FileForm {
    pub big_endian: bool,
    /// Link type, with the bits above it.
    pub link: u32,
    /// Maximum length of a frame.
    pub snap: usize,
    pub nanoseconds: bool,
    /// Seconds in the option if_tsoffset.
    pub offset: u64,
    pub block: PacketBlock,
}

/// Block of a packet in pcapng.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PacketBlock {
    Enhanced,
    Simple,
    Obsolete,
}

pub(super) const ETHERNET: FileForm = FileForm {
    big_endian: false,
    link: 1,
    snap: 65_535,
    nanoseconds: false,
    offset: 0,
    block: PacketBlock::Enhanced,
};

impl FileForm {
    fn u16(&self, number: u16) -> [u8; 2] {
        if self.big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    fn u32(&self, number: u32) -> [u8; 4] {
        if self.big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    fn u64(&self, number: u64) -> [u8; 8] {
        if self.big_endian {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    pub(super) fn pcap(&self, frames: &[Timed]) -> Vec<u8> {
        let magic = if self.nanoseconds {
            0xa1b2_3c4d
        } else {
            0xa1b2_c3d4
        };
        let mut file = self.u32(magic).to_vec();
        file.extend(self.u16(2));
        file.extend(self.u16(4));
        file.extend([0; 8]);
        file.extend(self.u32(self.snap as u32));
        file.extend(self.u32(self.link));
        for (nanos, frame) in frames {
            let unit = if self.nanoseconds { 1 } else { 1000 };
            let captured = frame.len().min(self.snap);
            for field in [
                nanos / NANOS,
                nanos % NANOS / unit,
                captured as u64,
                frame.len() as u64,
            ] {
                file.extend(self.u32(field as u32));
            }
            file.extend(&frame[..captured]);
        }
        file
    }

    /// Frames with the number of their interface, of `interfaces`.
    pub(super) fn pcapng(&self, interfaces: usize, frames: &[(u32, Timed)]) -> Vec<u8> {
        let mut section = self.u32(0x1a2b_3c4d).to_vec();
        section.extend(self.u16(1));
        section.extend(self.u16(0));
        section.extend([0xff; 8]);
        let mut file = self.block_of(0x0a0d_0d0a, &section);
        for _ in 0..interfaces {
            let mut interface = self.u16(self.link as u16).to_vec();
            interface.extend([0; 2]);
            interface.extend(self.u32(0));
            // if_tsresol 10^-9, if_tsoffset, end of options.
            interface.extend([self.u16(9), self.u16(1)].concat());
            interface.extend([9, 0, 0, 0]);
            interface.extend([self.u16(14), self.u16(8)].concat());
            interface.extend(self.u64(self.offset));
            interface.extend([0; 4]);
            file.extend(self.block_of(1, &interface));
        }
        for (interface, (nanos, frame)) in frames {
            file.extend(self.packet(*interface, nanos - self.offset * NANOS, frame));
        }
        file
    }

    fn packet(&self, interface: u32, stamp: u64, frame: &[u8]) -> Vec<u8> {
        let length = self.u32(frame.len() as u32);
        let captured = self.u32(frame.len().min(self.snap) as u32);
        let stamp = [self.u32((stamp >> 32) as u32), self.u32(stamp as u32)].concat();
        let (kind, mut body) = match self.block {
            PacketBlock::Enhanced => (
                6,
                [&self.u32(interface), &*stamp, &captured, &length].concat(),
            ),
            PacketBlock::Simple => (3, length.to_vec()),
            PacketBlock::Obsolete => {
                let first = [self.u16(interface as u16), self.u16(0)].concat();
                (2, [&*first, &stamp, &captured, &length].concat())
            }
        };
        body.extend(&frame[..frame.len().min(self.snap)]);
        self.block_of(kind, &body)
    }

    fn block_of(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(12 + padded as u32);
        let mut block = [self.u32(kind), length].concat();
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    }
}

/// An Ethernet header with these bytes after both addresses, then the packet.
pub(super) fn ethernet(middle: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], middle, packet].concat()
}

/// The EtherType of an IP packet.
pub(super) fn ether_type(packet: &[u8]) -> [u8; 2] {
    match packet[0] >> 4 {
        6 => [0x86, 0xdd],
        _ => [8, 0],
    }
}

/// A frame of `-i any` with the index of its interface.
pub(super) fn sll2(interface: u32, packet: &[u8]) -> Vec<u8> {
    let mut frame = ether_type(packet).to_vec();
    frame.extend([0, 0]);
    frame.extend(interface.to_be_bytes());
    frame.extend([0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    frame.extend(packet);
    frame
}

/// Each packet in a frame.
pub(super) fn framed(packets: &[Timed], frame: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Timed> {
    let packets = packets.iter();
    packets.map(|(at, packet)| (*at, frame(packet))).collect()
}

//! Types of the QUIC packets in a UDP datagram, as far as they are visible without keys.
//!
//! Long headers state their type and length (RFC 9000, section 17.2; RFC 9369, section 3.2, for version 2). Everything
//! else is encrypted or protected: packet numbers, frames, and the type of the rest of a connection. A packet with a
//! short header is a 1-RTT packet or a stateless reset; nobody but the receiver can tell them apart.
//!
//! The bit 0x40 is fixed in the first packet of a client. Later ones may have it clear (RFC 9287), so that it is no
//! condition for a packet of a connection that is known as QUIC.
//!
//! The traces of the emulator and of the QUIC simulator name packets with it.

use std::fmt;

/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;
/// Maximum number of packets of a datagram that are kept. Datagrams have one packet for each encryption level, three at
/// most.
const MOST_PACKETS: usize = 4;
/// Maximum length of a connection id (RFC 9000, section 17.2).
const LONGEST_ID: usize = 20;
/// Set in the first byte of each packet, unless the receiver permits other values (RFC 9287).
const FIXED_BIT: u8 = 0x40;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;

/// Type of a QUIC packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuicPacketType {
    /// First flight of each end.
    Initial,
    /// Data of the client before the handshake.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// A request to prove the address.
    Retry,
    /// The versions of the server.
    VersionNegotiation,
    /// Data with a short header, or a stateless reset.
    OneRtt,
}

/// The visible part of a UDP datagram that may belong to a QUIC connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuicDatagram {
    packets: [Option<QuicPacketType>; MOST_PACKETS],
    /// The fixed bit of its first packet is set.
    has_fixed_bit: bool,
    /// Bytes of UDP payload.
    payload: u32,
}

impl QuicPacketType {
    /// Its name in RFC 9000.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::ZeroRtt => "0-RTT",
            Self::Handshake => "Handshake",
            Self::Retry => "Retry",
            Self::VersionNegotiation => "Version Negotiation",
            Self::OneRtt => "1-RTT",
        }
    }

    /// The type of a packet with a long header of this version.
    const fn long(version: u32, first: u8) -> Option<Self> {
        let bits = first >> 4 & 3;
        let bits = match version {
            0 => return Some(Self::VersionNegotiation),
            VERSION_1 => bits,
            // Version 2 has the types of version 1 in another order, by one place.
            VERSION_2 => (bits + 3) & 3,
            _ => return None,
        };
        Some(match bits {
            0 => Self::Initial,
            1 => Self::ZeroRtt,
            2 => Self::Handshake,
            _ => Self::Retry,
        })
    }
}

impl QuicDatagram {
    /// Reads a UDP header and its payload. `None` if it cannot be QUIC.
    ///
    /// It can belong to another protocol nevertheless. It is QUIC if it, or a datagram of its connection before,
    /// [identifies QUIC](Self::identifies_quic).
    pub fn read(udp: &[u8]) -> Option<Self> {
        Self::of_payload(udp.get(UDP_HEADER..)?)
    }

    /// Like [`read`](Self::read), from the payload alone.
    pub fn of_payload(payload: &[u8]) -> Option<Self> {
        let mut datagram = Self {
            packets: [None; MOST_PACKETS],
            has_fixed_bit: payload.first().is_some_and(|first| first & FIXED_BIT != 0),
            payload: u32::try_from(payload.len()).ok()?,
        };
        let mut rest = payload;
        for index in 0..MOST_PACKETS {
            // Bytes after a packet that are no packet, such as padding, are ignored.
            let Some((packet, length)) = next_packet(rest) else {
                break;
            };
            datagram.packets[index] = Some(packet);
            rest = &rest[length..];
        }
        datagram.packets[0].map(|_| datagram)
    }

    /// The types of its packets, in order.
    pub fn packets(&self) -> impl Iterator<Item = QuicPacketType> + '_ {
        self.packets.iter().map_while(|packet| *packet)
    }

    /// True if its first packet has a long header.
    pub fn has_long_header(&self) -> bool {
        self.packets[0] != Some(QuicPacketType::OneRtt)
    }

    /// True if it shows that its connection is QUIC: the first packet has a long header of a known version, and the fixed
    /// bit. Version Negotiation has no version, so that datagrams of zeros resemble it.
    pub fn identifies_quic(&self) -> bool {
        let is_versioned = self.packets[0] != Some(QuicPacketType::VersionNegotiation);
        self.has_fixed_bit && is_versioned && self.has_long_header()
    }

    /// Bytes of UDP payload.
    pub const fn payload(&self) -> u32 {
        self.payload
    }
}

/// `Initial+Handshake`.
impl fmt::Display for QuicDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, packet) in self.packets().enumerate() {
            let separator = if index > 0 { "+" } else { "" };
            write!(f, "{separator}{}", packet.name())?;
        }
        Ok(())
    }
}

/// The type and length of the first packet. Packets without a length reach to the end.
fn next_packet(bytes: &[u8]) -> Option<(QuicPacketType, usize)> {
    let first = *bytes.first()?;
    if first & 0x80 == 0 {
        // Padding is zero to the end. The first byte of a packet can be zero if its fixed bit is clear.
        let is_packet = bytes.iter().any(|byte| *byte != 0);
        return is_packet.then_some((QuicPacketType::OneRtt, bytes.len()));
    }
    let version = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?);
    let packet = QuicPacketType::long(version, first)?;
    let mut rest = bytes.get(5..)?;
    for _ in 0..2 {
        let (length, after) = rest.split_first()?;
        let length = usize::from(*length);
        if length > LONGEST_ID && version != 0 {
            return None;
        }
        rest = after.get(length..)?;
    }
    match packet {
        QuicPacketType::Retry | QuicPacketType::VersionNegotiation => {
            return Some((packet, bytes.len()));
        }
        QuicPacketType::Initial => {
            let (token, after) = integer(rest)?;
            rest = after.get(usize::try_from(token).ok()?..)?;
        }
        _ => {}
    }
    let (length, after) = integer(rest)?;
    let rest = after.get(usize::try_from(length).ok()?..)?;
    Some((packet, bytes.len() - rest.len()))
}

/// A variable-length integer (RFC 9000, section 16), and the bytes after it.
fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let (value, rest) = bytes.split_at_checked(length)?;
    let start = u64::from(first & 0x3f);
    let value = value[1..]
        .iter()
        .fold(start, |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram with this payload, after a UDP header that is not read.
    fn read(payload: &[u8]) -> Option<String> {
        let datagram = QuicDatagram::read(&[&[0; UDP_HEADER], payload].concat())?;
        assert_eq!(datagram.payload() as usize, payload.len());
        Some(datagram.to_string())
    }

    /// A long header with connection ids of 8 and 0 bytes, then `rest`.
    fn long(first: u8, version: u32, rest: &[u8]) -> Vec<u8> {
        let ids = [&[8][..], &[7; 8], &[0]].concat();
        [&[first][..], &version.to_be_bytes(), &ids, rest].concat()
    }

    #[test]
    fn coalesced_packets_are_found_by_their_lengths() {
        // Initial: no token, three bytes. Handshake: a length of two bytes, five bytes.
        let initial = long(0xc0, 1, &[0, 3, 1, 2, 3]);
        let handshake = long(0xe0, 1, &[0x40, 5, 1, 2, 3, 4, 5]);
        let short = [0x41, 9, 9, 9];
        assert_eq!(read(&initial).as_deref(), Some("Initial"));
        let all = [&initial[..], &handshake, &short].concat();
        assert_eq!(read(&all).as_deref(), Some("Initial+Handshake+1-RTT"));
        let padded = [&initial[..], &[0; 100]].concat();
        assert_eq!(read(&padded).as_deref(), Some("Initial"));
        let early = [&initial[..], &long(0xd0, 1, &[1, 1])].concat();
        assert_eq!(read(&early).as_deref(), Some("Initial+0-RTT"));
    }

    /// RFC 9001, appendix A: the headers of the Initial packets and the Retry packet of its example.
    #[test]
    fn the_examples_of_the_specification_are_read() {
        let client = [
            0xc0, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e,
        ];
        let datagram = [&client[..], &[0x7b; 1182]].concat();
        assert_eq!(datagram.len(), 1200);
        assert_eq!(read(&datagram).as_deref(), Some("Initial"));
        let server = [
            0xcf, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0, 0x40, 0x75,
        ];
        let datagram = [&server[..], &[0xc0; 117]].concat();
        assert_eq!(read(&datagram).as_deref(), Some("Initial"));
        let retry = [
            0xff, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f,
        ];
        assert_eq!(read(&retry).as_deref(), Some("Retry"));
    }

    #[test]
    fn version_2_has_other_numbers_for_its_types() {
        let version = VERSION_2;
        let body = [0, 1, 9];
        assert_eq!(
            read(&long(0xd0, version, &body)).as_deref(),
            Some("Initial")
        );
        assert_eq!(
            read(&long(0xf0, version, &body[1..])).as_deref(),
            Some("Handshake")
        );
        assert_eq!(
            read(&long(0xe0, version, &body[1..])).as_deref(),
            Some("0-RTT")
        );
        assert_eq!(read(&long(0xc0, version, &body)).as_deref(), Some("Retry"));
        let versions = long(0x80, 0, &1u32.to_be_bytes());
        assert_eq!(read(&versions).as_deref(), Some("Version Negotiation"));
    }

    #[test]
    fn other_datagrams_are_not_quic() {
        for payload in [
            &[][..],
            // A length beyond the datagram, an id beyond 20 bytes, an unknown version, zeros.
            &long(0xc0, 1, &[0, 4, 1, 2, 3]),
            &[&[0xc0, 0, 0, 0, 1, 21][..], &[0; 40]].concat(),
            &long(0xc0, 3, &[0, 1, 9]),
            &[0; 40],
            &[0xc0, 0, 0, 0],
        ] {
            assert_eq!(read(payload), None, "{payload:?}");
        }
        assert_eq!(QuicDatagram::read(&[0; 7]), None);
        let short = QuicDatagram::read(&[&[0; UDP_HEADER][..], &[0x40, 1, 2]].concat()).unwrap();
        assert!(!short.has_long_header());
    }

    /// RFC 9287: ends that agreed on it clear the fixed bit of any packet but the first.
    #[test]
    fn packets_with_a_clear_fixed_bit_are_read() {
        let initial = |bits| long(bits, 1, &[0, 3, 1, 2, 3]);
        let handshake = long(0xa0, 1, &[2, 1, 2]);
        for short in [[0x41, 9, 9], [0x01, 9, 9], [0, 0, 9]] {
            let all = [&initial(0x80)[..], &handshake, &short].concat();
            assert_eq!(read(&all).as_deref(), Some("Initial+Handshake+1-RTT"));
            assert_eq!(read(&short).as_deref(), Some("1-RTT"));
        }
        let second = long(0x90, VERSION_2, &[0, 1, 9]);
        assert_eq!(read(&second).as_deref(), Some("Initial"));
        let identifies =
            |payload: &[u8]| QuicDatagram::of_payload(payload).unwrap().identifies_quic();
        assert!(identifies(&[&initial(0xc0)[..], &handshake].concat()));
        assert!(!identifies(
            &[&initial(0x80)[..], &long(0xe0, 1, &[0])].concat()
        ));
        assert!(!identifies(&[0x41, 9, 9]));
        // Version Negotiation, and a request for the time (SNTP) that resembles it.
        assert!(!identifies(&long(0xc0, 0, &1u32.to_be_bytes())));
        assert!(!identifies(&[&[0xe3][..], &[0; 47]].concat()));
    }
}

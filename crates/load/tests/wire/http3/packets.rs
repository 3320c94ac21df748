//! Packets of QUIC that a server makes without a connection.

/// Identifiers in the long header of a packet (RFC 9000, section 17.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identifiers {
    pub(super) destination: Vec<u8>,
    pub(super) source: Vec<u8>,
}

impl Identifiers {
    /// Reads them from a packet with a long header. Returns also the rest of the packet.
    pub(super) fn read(packet: &[u8]) -> (Self, &[u8]) {
        let (destination, rest) = prefixed(&packet[5..]);
        let (source, rest) = prefixed(rest);
        let identifiers = Self {
            destination: destination.to_vec(),
            source: source.to_vec(),
        };
        (identifiers, rest)
    }

    /// Those of an answer.
    pub(super) fn exchanged(self) -> Self {
        Self {
            destination: self.source,
            source: self.destination,
        }
    }

    /// The begin of a long header of this version.
    pub(super) fn header(&self, first: u8, version: u32) -> Vec<u8> {
        let mut header = vec![first];
        header.extend(version.to_be_bytes());
        for identifier in [&self.destination, &self.source] {
            header.push(u8::try_from(identifier.len()).expect("identifiers have 20 bytes at most"));
            header.extend(identifier);
        }
        header
    }
}

/// Splits bytes that begin with the length of the first part.
fn prefixed(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[1..].split_at(usize::from(bytes[0]))
}

/// Version Negotiation (RFC 9000, section 17.2.1) for a packet of a client, with a version that does not exist.
pub(super) fn version_negotiation(packet: &[u8]) -> Vec<u8> {
    let (identifiers, _) = Identifiers::read(packet);
    let mut answer = identifiers.exchanged().header(0x80, 0);
    answer.extend(0x1a2a_3a4a_u32.to_be_bytes());
    answer
}

//! Packets of QUIC that a server makes without a connection: Version Negotiation and Retry.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// Key and nonce of the tag of a Retry (RFC 9001, section 5.8).
const RETRY_KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

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

/// A Retry (RFC 9000, section 17.2.5) for an Initial packet of a client, with this identifier of the server.
pub(super) fn retry(packet: &[u8], source: Vec<u8>, token: &[u8]) -> Vec<u8> {
    let (identifiers, _) = Identifiers::read(packet);
    let original = identifiers.destination;
    let identifiers = Identifiers {
        destination: identifiers.source,
        source,
    };
    let mut answer = identifiers.header(0xf0, 1);
    answer.extend(token);
    let length = u8::try_from(original.len()).expect("identifiers have 20 bytes at most");
    let pseudo_packet = [&[length], &original[..], &answer].concat();
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &RETRY_KEY).unwrap());
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(pseudo_packet), &mut []);
    answer.extend(tag.unwrap().as_ref());
    answer
}

/// Splits bytes that begin with an integer of variable length (RFC 9000, section 16).
pub(super) fn integer(bytes: &[u8]) -> (u64, &[u8]) {
    let length = 1 << (bytes[0] >> 6);
    let (number, rest) = bytes.split_at(length);
    let value = number
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    // Without the two bits of the length.
    (value & (u64::MAX >> 2 >> (64 - 8 * length)), rest)
}

//! A UDP datagram on a link.

use bytes::Bytes;
use posthaste_link as link;
use quinn_proto::EcnCodepoint;

/// Bytes of an IPv4 header (RFC 791, section 3.1) and of a UDP header (RFC 768).
const HEADERS: u32 = 20 + 8;

/// A datagram on a link. Copies share their content.
///
/// A flipped bit damages the datagram as a whole: the receiver finds a wrong UDP or IP checksum and drops it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedDatagram {
    /// Payload of UDP.
    pub payload: Bytes,
    /// A bit of the packet has flipped.
    pub damaged: bool,
    pub(crate) ecn: Option<EcnCodepoint>,
}

impl link::Packet for CarriedDatagram {
    fn bytes(&self) -> u32 {
        let payload = u32::try_from(self.payload.len()).expect("UDP limits the payload");
        HEADERS + payload
    }

    fn flip(&mut self, _bit: u32) {
        self.damaged = true;
    }
}

//! What the beginning of a packet says: enough of TCP's header to tell what a segment was.
//!
//! Packets are read as they left the link: where bits were flipped, the header may be another
//! than the sender's, and whoever reads it decides whether to believe it.

use etherparse::{LaxIpSlice, TcpOptionElement, TcpSlice, ip_number};

use crate::sighting::Sighting;

/// Largest shift of a window (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;

/// A packet by its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Tcp(Segment),
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// A part of a larger packet, of whatever protocol.
    Fragment,
    /// Another protocol's.
    Other,
    /// Headers that contradict themselves.
    Unreadable,
}

/// A TCP header, its numbers as they are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    /// Where the ACK flag is set.
    pub(super) acknowledgment: Option<u32>,
    /// The lower eight bits: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
    pub(super) flags: u8,
    pub(super) window: u16,
    /// Bytes of data.
    pub(super) payload: u32,
    /// The option of a SYN, whose absence means that no window is scaled.
    pub(super) scale: Option<u8>,
    /// The option of a SYN.
    pub(super) may_sack: bool,
    /// Blocks of a selective acknowledgement: first number, and the first one behind.
    pub(super) sack: [Option<(u32, u32)>; 4],
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;

/// The flags' letters, lowest bit first, as tcpdump has them.
const LETTERS: [char; 8] = ['F', 'S', 'R', 'P', '.', 'U', 'E', 'W'];

impl Packet {
    pub(super) fn read(sighting: &Sighting) -> Self {
        let head = sighting.head();
        let Ok((ip, _)) = LaxIpSlice::from_slice(head) else {
            return Self::Unreadable;
        };
        if ip.is_fragmenting_payload() {
            return Self::Fragment;
        }
        match ip.payload_ip_number() {
            ip_number::TCP => {
                let payload = ip.payload().payload;
                Segment::read(payload, sighting.length, head.len() - payload.len())
                    .map_or(Self::Unreadable, Self::Tcp)
            }
            ip_number::UDP => Self::Udp,
            ip_number::ICMP | ip_number::IPV6_ICMP => Self::Icmp,
            _ => Self::Other,
        }
    }
}

impl Segment {
    /// Reads the TCP header at the beginning of `payload`, behind `before` bytes of a packet of
    /// `length`.
    fn read(payload: &[u8], length: u32, before: usize) -> Option<Self> {
        let tcp = TcpSlice::from_slice(payload).ok()?;
        let mut segment = Self {
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
            flags: payload[13],
            window: tcp.window_size(),
            payload: length.checked_sub((before + tcp.header_len()) as u32)?,
            scale: None,
            may_sack: false,
            sack: [None; 4],
        };
        for option in tcp.options_iterator().map_while(Result::ok) {
            match option {
                TcpOptionElement::WindowScale(shift) if segment.has(SYN) => {
                    segment.scale = Some(shift.min(LARGEST_SCALE));
                }
                TcpOptionElement::SelectiveAcknowledgementPermitted => segment.may_sack = true,
                TcpOptionElement::SelectiveAcknowledgement(first, [second, third, fourth]) => {
                    segment.sack = [Some(first), second, third, fourth];
                }
                _ => {}
            }
        }
        Some(segment)
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Places that it takes in the stream: SYN and FIN have one each.
    pub(super) fn length(&self) -> u32 {
        self.payload + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    /// Its flags as tcpdump writes them: `S.` for a SYN-ACK.
    pub(super) fn letters(&self) -> String {
        let set = (0..8).filter(|bit| self.flags >> bit & 1 == 1);
        set.map(|bit| LETTERS[bit]).collect()
    }
}

//! Headers of a recorded packet, as far as they are needed to classify TCP segments.
//!
//! Packets are read as they left the link. If bits were flipped, the header may differ from the sender's, and the
//! reader decides if it is credible.

use etherparse::{LaxIpSlice, TcpOptionElement, TcpSlice, ip_number};

use crate::path::packet_record::PacketRecord;

/// Largest window scale (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;

/// A packet by its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketHeaders {
    Tcp(SegmentHeader),
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// A fragment of a packet, of any protocol.
    Fragment,
    /// Another protocol.
    Other,
    /// Headers that contradict themselves.
    Unreadable,
}

/// A TCP header, with its numbers as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) sequence: u32,
    /// Acknowledgement number, if the ACK flag is set.
    pub(super) acknowledgment: Option<u32>,
    /// The lower eight bits: CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
    pub(super) flags: u8,
    pub(super) window: u16,
    /// Bytes of data.
    pub(super) payload: u32,
    /// Window scale of a SYN. Without the option no window is scaled.
    pub(super) scale: Option<u8>,
    /// SACK-permitted option of a SYN.
    pub(super) may_sack: bool,
    /// SACK blocks: start and end of each.
    pub(super) sack: [Option<(u32, u32)>; 4],
}

pub(super) const FIN: u8 = 1;
pub(super) const SYN: u8 = 2;
pub(super) const RST: u8 = 4;

/// Letters of the flags, lowest bit first, as in tcpdump.
const LETTERS: [char; 8] = ['F', 'S', 'R', 'P', '.', 'U', 'E', 'W'];

impl PacketHeaders {
    pub(super) fn read(packet_record: &PacketRecord) -> Self {
        let head = packet_record.head();
        let Ok((ip, _)) = LaxIpSlice::from_slice(head) else {
            return Self::Unreadable;
        };
        if ip.is_fragmenting_payload() {
            return Self::Fragment;
        }
        match ip.payload_ip_number() {
            ip_number::TCP => {
                let payload = ip.payload().payload;
                SegmentHeader::read(payload, packet_record.length, head.len() - payload.len())
                    .map_or(Self::Unreadable, Self::Tcp)
            }
            ip_number::UDP => Self::Udp,
            ip_number::ICMP | ip_number::IPV6_ICMP => Self::Icmp,
            _ => Self::Other,
        }
    }
}

impl SegmentHeader {
    /// Reads the TCP header at the beginning of `payload`, which follows `before` bytes in a packet of `length` bytes.
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

    /// Sequence numbers that it occupies. SYN and FIN occupy one each.
    pub(super) fn length(&self) -> u32 {
        self.payload + u32::from(self.has(SYN)) + u32::from(self.has(FIN))
    }

    /// Its flags as tcpdump writes them: `S.` for a SYN-ACK.
    pub(super) fn letters(&self) -> String {
        let set = (0..8).filter(|bit| self.flags >> bit & 1 == 1);
        set.map(|bit| LETTERS[bit]).collect()
    }
}

//! The network's view: data segments from the server's end, the replies in each, and their marks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use etherparse::{LaxSlicedPacket, TransportSlice};
use posthaste_emulator::PacketRecord;
use posthaste_units::Dscp;

use crate::asking::ClientReport;

/// A data segment sent by the server's end, whether it arrived or not.
pub(crate) struct MarkedSegment {
    /// Its two ends.
    pub(crate) server: SocketAddr,
    pub(crate) client: SocketAddr,
    /// Number of its connection, because ports are reused.
    pub(crate) connection: usize,
    /// Offset of its first byte in the stream.
    pub(crate) start: u32,
    pub(crate) length: u32,
    pub(crate) mark: Dscp,
    /// The beginning of its data, as far as it was kept.
    pub(crate) head: Vec<u8>,
}

/// Observations of all connections.
#[derive(Debug, Default)]
pub(crate) struct MarkTotals {
    pub(crate) connections: usize,
    /// Segments with retransmitted data.
    pub(crate) again: usize,
}

/// Collects packets and the starts of streams.
#[derive(Default)]
pub(crate) struct SegmentLog {
    /// The current connections by their ends: number, and sequence number of the first byte.
    open: HashMap<(SocketAddr, SocketAddr), (usize, u32)>,
    count: usize,
    pub(crate) segments: Vec<MarkedSegment>,
}

impl SegmentLog {
    /// Adds a packet from the server's end.
    pub(crate) fn take(&mut self, packet_record: &PacketRecord) {
        let Ok(packet) = LaxSlicedPacket::from_ip(packet_record.head()) else {
            return;
        };
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else {
            return;
        };
        let (server, client) = (packet_record.flow.server, packet_record.flow.client);
        let stream = (server, client);
        if tcp.syn() {
            let first = tcp.sequence_number().wrapping_add(1);
            if self.open.get(&stream).is_none_or(|(_, old)| *old != first) {
                self.open.insert(stream, (self.count, first));
                self.count += 1;
            }
            return;
        }
        let bytes = packet_record.head();
        let (class, before) = match bytes[0] >> 4 {
            4 => (bytes[1], usize::from(bytes[0] & 0x0f) * 4),
            _ => (bytes[0] << 4 | bytes[1] >> 4, 40),
        };
        let before = before + usize::from(tcp.data_offset()) * 4;
        let length = packet_record.length - before as u32;
        if length > 0 {
            let (connection, first) = self.open[&stream];
            let start = tcp.sequence_number().wrapping_sub(first);
            self.segments.push(MarkedSegment {
                server,
                client,
                connection,
                start,
                length,
                mark: Dscp::of_traffic_class(class),
                head: bytes.get(before..).unwrap_or_default().to_vec(),
            });
        }
    }
}

/// Fails unless each segment has the mark of every reply that it contains a byte of.
pub(crate) fn expect_marks(
    segments: &[MarkedSegment],
    mut reports: Vec<ClientReport>,
) -> MarkTotals {
    let mut seen = MarkTotals::default();
    let mut connections: BTreeMap<usize, Vec<&MarkedSegment>> = BTreeMap::new();
    for segment in segments {
        connections
            .entry(segment.connection)
            .or_default()
            .push(segment);
    }
    // Connections between the same ends are in order of their start.
    let mut by_ends: HashMap<_, VecDeque<_>> = HashMap::new();
    for segments in connections.into_values() {
        let ends = (segments[0].server, segments[0].client);
        by_ends.entry(ends).or_default().push_back(segments);
    }
    reports.sort_by_key(|report| report.since);
    for report in reports {
        let segments = by_ends.get_mut(&report.ends).and_then(VecDeque::pop_front);
        let segments = segments.expect("it was seen");
        seen.connections += 1;
        let mut next = 0;
        for segment in segments {
            let end = segment.start + segment.length;
            seen.again += usize::from(segment.start < next);
            next = next.max(end);
            let mut begin = 0;
            for (number, (mark, over)) in report.replies.iter().enumerate() {
                let holds = segment.start < *over && end > begin;
                assert!(
                    !holds || segment.mark == *mark,
                    "bytes {}..{end} are marked {}; reply {number}, bytes {begin}..{over}, is {mark}",
                    segment.start,
                    segment.mark
                );
                begin = *over;
            }
        }
        let last = report.replies.last().map_or(0, |(_, over)| *over);
        assert!(next >= last, "all of it was seen");
    }
    seen
}

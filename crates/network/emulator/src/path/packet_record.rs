//! Packet records from the emulator, for traces and recordings.
//!
//! Records go into a buffer of fixed size, allocated before the first packet. Reading never blocks, so the emulator
//! never has to wake a reader: poll every few milliseconds. Records that find the buffer full are counted and
//! discarded. The packets themselves are not affected.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use etherparse::LaxIpSlice;
use posthaste_link::quic::QuicDatagram;
use posthaste_link::{Departure, Direction, Fate};
use posthaste_units::Instant;

use crate::path::flow::Flow;

/// IP protocol number of UDP.
const UDP: u8 = 17;

/// Bytes kept of each packet: the headers of IPv6 and TCP with all options, and some more.
pub const HEAD: usize = 128;

/// A packet that has left a link, delivered or dropped.
#[derive(Clone, Debug)]
pub struct PacketRecord {
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of its connection, from 1, in the order of first packets.
    pub connection: u64,
    /// Its connection.
    pub flow: Flow,
    /// Its position in its connection and direction, from 1.
    pub position: u64,
    /// 0 for the packet itself, 1 and up for copies made by the link.
    pub copy: u32,
    /// Arrival at the emulator by the kernel's stamp, since the emulator's start.
    pub arrived: Instant,
    /// Planned departure.
    pub left: Instant,
    /// Actual time of sending; equals `left` for a dropped packet.
    pub sent: Instant,
    /// Delivered or dropped, with marks or reason.
    pub fate: Fate,
    /// Bytes of the whole IP packet.
    pub length: u32,
    /// The QUIC packets of a UDP datagram that may have some.
    pub quic: Option<QuicDatagram>,
    head: [u8; HEAD],
}

impl PacketRecord {
    /// The first bytes of the IP packet as it left, at most [`HEAD`].
    pub fn head(&self) -> &[u8] {
        &self.head[..HEAD.min(self.length as usize)]
    }
}

impl PacketRecord {
    /// Record of a packet that has left a link, with its connection and the time of sending.
    pub fn new(
        direction: Direction,
        connection: u64,
        flow: Flow,
        departure: &Departure<Vec<u8>>,
        sent: Instant,
    ) -> Self {
        debug_assert!(departure.position > 0, "positions count from 1");
        debug_assert!(
            departure.left <= sent,
            "a packet was sent before it left its link"
        );
        let packet = &departure.packet;
        let mut head = [0; HEAD];
        let kept = packet.len().min(HEAD);
        head[..kept].copy_from_slice(&packet[..kept]);
        let quic = (flow.protocol == UDP)
            .then(|| datagram(packet).and_then(QuicDatagram::read))
            .flatten();
        Self {
            direction,
            connection,
            flow,
            position: departure.position,
            copy: departure.copy,
            arrived: departure.arrived,
            left: departure.left,
            sent,
            fate: departure.fate,
            length: packet.len() as u32,
            quic,
            head,
        }
    }
}

/// The UDP header and payload of a packet that is not a fragment.
fn datagram(packet: &[u8]) -> Option<&[u8]> {
    let (ip, _) = LaxIpSlice::from_slice(packet).ok()?;
    (!ip.is_fragmenting_payload()).then(|| ip.payload().payload)
}

/// The reading end of a buffer.
#[derive(Debug)]
pub struct Notes<T>(Receiver<T>);

impl<T> Notes<T> {
    /// The next available record. `None` if there is none, now or after the emulator's end.
    pub fn take(&self) -> Option<T> {
        self.0.try_recv().ok()
    }

    /// All records available now.
    pub fn drain(&self) -> impl Iterator<Item = T> + '_ {
        self.0.try_iter()
    }
}

/// The emulator's end of a buffer, without effect if no buffer was requested.
pub(crate) struct TraceWriter<T> {
    buffer: Option<SyncSender<T>>,
    missed: u64,
}

/// A buffer for `capacity` records, or a writer without effect if none was requested.
pub(crate) fn buffer<T>(capacity: Option<usize>) -> (TraceWriter<T>, Option<Notes<T>>) {
    let (buffer, notes) = capacity
        .map(|capacity| sync_channel(capacity.max(1)))
        .unzip();
    (TraceWriter { buffer, missed: 0 }, notes.map(Notes))
}

impl<T> TraceWriter<T> {
    /// Writes a record if a buffer was requested.
    pub(crate) fn note(&mut self, note: impl FnOnce() -> T) {
        if let Some(buffer) = &self.buffer
            && buffer.try_send(note()).is_err()
        {
            self.missed += 1;
        }
    }

    /// Records discarded because the buffer was full, or its reader was gone.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

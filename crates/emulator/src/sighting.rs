//! What the emulator notes of each packet, for a trace or a record, without waiting for a reader.
//!
//! Notes go into a buffer of fixed size that is there before the first packet. Reading never
//! waits either, so that the emulator never has to wake a reader: look every few milliseconds.
//! What finds the buffer full is counted and not kept; the packet itself is not affected.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use posthaste_link::{Direction, Fate, Passage};
use posthaste_units::Instant;

use crate::flow::Flow;

/// Bytes kept of each packet: the headers of IPv6 and TCP with all options, and some more.
pub const HEAD: usize = 128;

/// One packet that has come out of a link: delivered or dropped.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Which way it went.
    pub direction: Direction,
    /// Its connection's number, from 1, in the order of first packets.
    pub connection: u64,
    /// Its connection.
    pub flow: Flow,
    /// Its place in its connection and direction, from 1.
    pub position: u64,
    /// 0 for the packet itself, 1 and up for copies that the link made.
    pub copy: u32,
    /// When it arrived at the emulator, by the kernel's stamp; since the emulator's start.
    pub arrived: Instant,
    /// When it was to leave.
    pub left: Instant,
    /// When it was really sent; `left` where it was dropped.
    pub sent: Instant,
    /// What became of it.
    pub fate: Fate,
    /// Bytes of the whole IP packet.
    pub length: u32,
    head: [u8; HEAD],
}

impl Sighting {
    /// The beginning of the IP packet as it left, at most [`HEAD`] bytes.
    pub fn head(&self) -> &[u8] {
        &self.head[..HEAD.min(self.length as usize)]
    }
}

impl Sighting {
    /// A packet that has come out of a link, whoever drove it: its connection and when it was sent.
    pub fn new(
        (direction, connection, flow): (Direction, u64, Flow),
        passage: &Passage<Vec<u8>>,
        sent: Instant,
    ) -> Self {
        let packet = &passage.packet;
        let mut head = [0; HEAD];
        let kept = packet.len().min(HEAD);
        head[..kept].copy_from_slice(&packet[..kept]);
        Self {
            direction,
            connection,
            flow,
            position: passage.position,
            copy: passage.copy,
            arrived: passage.arrived,
            left: passage.left,
            sent,
            fate: passage.fate,
            length: packet.len() as u32,
            head,
        }
    }
}

/// The reading end of a buffer.
#[derive(Debug)]
pub struct Notes<T>(Receiver<T>);

impl<T> Notes<T> {
    /// The next note that is there; none when none is, now or after the emulator's end.
    pub fn take(&self) -> Option<T> {
        self.0.try_recv().ok()
    }

    /// All that are there now.
    pub fn drain(&self) -> impl Iterator<Item = T> + '_ {
        self.0.try_iter()
    }
}

/// The emulator's end of a buffer, which may not have been asked for.
pub(crate) struct Pen<T> {
    buffer: Option<SyncSender<T>>,
    missed: u64,
}

/// A buffer for so many notes; a pen that writes nowhere where none are asked for.
pub(crate) fn buffer<T>(capacity: Option<usize>) -> (Pen<T>, Option<Notes<T>>) {
    let (buffer, notes) = capacity
        .map(|capacity| sync_channel(capacity.max(1)))
        .unzip();
    (Pen { buffer, missed: 0 }, notes.map(Notes))
}

impl<T> Pen<T> {
    /// Writes a note down, where somebody asked for it.
    pub(crate) fn note(&mut self, note: impl FnOnce() -> T) {
        if let Some(buffer) = &self.buffer
            && buffer.try_send(note()).is_err()
        {
            self.missed += 1;
        }
    }

    /// Notes that found the buffer full, or nobody to read it.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

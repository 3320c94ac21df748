//! The peer's window, as its newest segment stated it.

use super::Ack;
use super::sequence::SendSequence;
use crate::Offset;

#[derive(Clone, Copy, Debug)]
pub(super) struct PeerWindow {
    /// A smaller window of the same segment also counts as an update.
    any_change: bool,
    pub(super) size: u64,
    /// Segment and acknowledgement of the last window update (`snd_wl1`, `snd_wl2`).
    source: (Offset, Offset),
    pub(super) largest: u64,
}

impl PeerWindow {
    pub(super) const fn new(any_change: bool) -> Self {
        Self {
            any_change,
            size: 0,
            source: (0, 0),
            largest: 0,
        }
    }

    /// Starts with the window of the handshake.
    pub(super) const fn open(&mut self, size: u64) {
        self.size = size;
        self.largest = size;
        self.source = (1, 1);
    }

    /// Takes the window of the newest segment (RFC 9293, section 3.10.7.4). Returns true if the segment counts as a
    /// window update, as in Linux (`tcp_may_update_window`).
    pub(super) fn update(&mut self, ack: &Ack<'_>) -> bool {
        let same = ack.seq == self.source.0;
        let changes = if self.any_change {
            ack.window != self.size
        } else {
            ack.window > self.size
        };
        let newer = ack.number > self.source.1 || ack.seq > self.source.0;
        if !(newer || same && changes) || ack.number < self.source.1 {
            return false;
        }
        self.size = ack.window;
        self.largest = self.largest.max(ack.window);
        self.source = (ack.seq.max(self.source.0), ack.number);
        true
    }

    /// Bytes that the window still takes beyond the data sent.
    pub(super) const fn open_beyond(&self, sequence: &SendSequence) -> u64 {
        (sequence.una + self.size).saturating_sub(sequence.max)
    }
}

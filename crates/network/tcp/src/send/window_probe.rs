//! Probes of a window that is too small for the waiting data (RFC 9293, section 3.8.6.1).

use posthaste_units::Instant;

use super::flight::Flight;
use super::flight::transmit::Chunk;
use crate::Offset;
use crate::profile::Persist;

#[derive(Clone, Copy, Debug)]
pub(super) struct WindowProbe {
    rule: Persist,
    /// Probes sent since the last acknowledgement.
    pub(super) count: u32,
    /// A probe must be sent.
    pub(super) due: bool,
}

impl WindowProbe {
    pub(super) const fn new(rule: Persist) -> Self {
        Self {
            rule,
            count: 0,
            due: false,
        }
    }

    /// Starts the persist timer if nothing is in flight and the peer's window blocks waiting data.
    pub(super) fn watch(&self, flight: &mut Flight, now: Instant) {
        let waits = flight.timer.running.is_none()
            && flight.board.is_empty()
            && flight.sequence.unsent() > 0;
        if waits && !flight.fits_something() {
            flight.timer.set_persist(now, self.rule);
        }
    }

    /// Handles the expired persist timer. Returns false if the limit of probes is reached.
    pub(super) fn expire(&mut self, flight: &mut Flight, now: Instant) -> bool {
        if self.count >= flight.rules.retries {
            return false;
        }
        self.count += 1;
        self.due = true;
        flight.timer.backoff += 1;
        flight.timer.set_persist(now, self.rule);
        true
    }

    /// Builds a probe: the data that fits in a window too small for a segment. With a closed window: one byte beyond
    /// it, or a sequence number that the peer has already acknowledged, so that it answers. The byte does not count as
    /// sent. Unless it is acknowledged, it leaves again with the data after it.
    pub(super) fn send(&self, flight: &mut Flight, now: Instant, room: u32) -> Chunk {
        let sequence = &mut flight.sequence;
        let open = flight.peer.open_beyond(sequence);
        let data = sequence.unsent_data();
        let len = data.min(open).min(u64::from(room));
        let chunk = Chunk {
            start: sequence.max,
            len: len as u32,
            fin: false,
            last: len == data,
        };
        if len > 0 && flight.board.is_empty() {
            return flight.send_fresh(now, chunk);
        }
        if self.rule.with_data && data > 0 && flight.board.is_empty() {
            sequence.probed = true;
            return Chunk { len: 1, ..chunk };
        }
        Chunk {
            start: sequence.una.saturating_sub(1),
            len: 0,
            last: false,
            ..chunk
        }
    }
}

/// Records the byte of a window probe as sent once the peer has accepted it.
pub(super) fn book_probe(flight: &mut Flight, now: Instant, ack: Offset) {
    if flight.sequence.probed && ack == flight.sequence.max + 1 {
        let timer = flight.timer.running;
        flight.send_fresh(
            now,
            Chunk {
                start: flight.sequence.max,
                len: 1,
                fin: false,
                last: false,
            },
        );
        flight.timer.running = timer;
    }
}

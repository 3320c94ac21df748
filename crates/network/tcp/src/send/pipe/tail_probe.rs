//! Tail loss probe (RFC 8985, section 7) as in Linux (in tcp_output.c `tcp_schedule_loss_probe` and
//! `tcp_send_loss_probe`). The restart of the sender's timer schedules it.

use posthaste_units::Instant;

use crate::send::ack::{Ack, AckEffect};
use crate::send::flight::Flight;
use crate::send::flight::transmit::{Chunk, Repair};
use crate::{EndpointCounters, Offset};

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
struct ProbeInFlight {
    /// End of the data sent at the time of the probe (`tlp_high_seq`).
    reach: Offset,
    /// It was a retransmission.
    repeats: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct TailProbing {
    probe: Option<ProbeInFlight>,
    /// A probe must be sent.
    pub(in crate::send) due: bool,
}

impl TailProbing {
    /// Handles the probe's timer: schedules new data if there is any, else the last segment again
    /// (`tcp_send_loss_probe`). At most one probe is in flight.
    pub(in crate::send) fn expire(&mut self, flight: &mut Flight, now: Instant) {
        if flight.board.is_empty() {
            return;
        }
        self.due = self.probe.is_none();
        flight.timer.set_timeout(now);
    }

    /// Sends the probe, and restarts the retransmission timer.
    pub(super) fn send(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let chunk = match flight.fresh(room, u64::MAX) {
            Some(fresh) => {
                let chunk = flight.send_fresh(now, fresh);
                self.start(flight.sequence.max, false);
                Some(chunk)
            }
            None => {
                let last = flight.board.len().checked_sub(1)?;
                self.start(flight.sequence.max, true);
                flight.send_again(now, last, Repair::Probe, counters)
            }
        };
        flight.timer.set_timeout(now);
        chunk
    }

    const fn start(&mut self, reach: Offset, repeats: bool) {
        self.probe = Some(ProbeInFlight { reach, repeats });
    }

    /// Forgets the probe. Its answer has no effect.
    pub(super) const fn stop(&mut self) {
        self.probe = None;
    }

    /// Returns true if a retransmission of the last segment is in flight as a probe.
    pub(super) fn repeats(&self) -> bool {
        self.probe.is_some_and(|probe| probe.repeats)
    }

    /// Evaluates an acknowledgement after a probe (`tcp_process_tlp_ack`).
    pub(super) fn answered(&mut self, flight: &mut Flight, ack: &Ack<'_>, news: &AckEffect) {
        let Some(ProbeInFlight { reach, repeats }) = self.probe else {
            return;
        };
        if ack.number < reach {
            return;
        }
        if !repeats || news.dsack {
            // New data cannot hide a loss, and a D-SACK shows that the original has arrived (RFC 8985, section 7.4.2).
            self.stop();
        } else if ack.number > reach {
            // The probe repaired a loss that had no other sign: reduce the window.
            self.stop();
            flight.congestion.lost(flight.basis());
            let threshold = flight.congestion.threshold();
            flight.congestion.set_window(threshold);
            flight.congestion.finished();
        } else if news.duplicate && news.sacked == 0 {
            // A second acknowledgement of the same data: both the original and the probe have arrived.
            self.stop();
        }
    }
}

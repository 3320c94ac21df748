//! Selection of the next segment: a probe of the tail, a repair, new data, a rescue.

use posthaste_units::Instant;

use super::PipeRecovery;
use crate::EndpointCounters;
use crate::congestion::Counting;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;
use crate::send::flight::transmit::Chunk;
use crate::send::scoreboard::SentSegment;
use crate::send::timer::Purpose;

impl PipeRecovery {
    pub(in crate::send) fn transmit(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        if std::mem::take(&mut self.tail_probe.due) {
            return self.tail_probe.send(flight, now, room, counters);
        }
        let window = flight.congestion.window();
        let left = window.saturating_sub(flight.in_flight());
        let forced = std::mem::take(&mut flight.episode.force);
        if !self.only_new && flight.board.has_unrepaired() {
            let left = if forced { u64::MAX } else { left };
            return self.repair_first(flight, now, left, counters);
        }
        if self.deferral.applies(flight, now, left) {
            self.usage.update(flight, true);
            return None;
        }
        let mss = flight.rules.mss();
        // A stack that counts segments sends a segment of any size if the window has a full segment left.
        let allowed = if flight.rules.counting != Counting::Segments {
            left
        } else if left >= mss {
            u64::MAX
        } else {
            0
        };
        let chunk = flight
            .fresh(room, allowed)
            .or_else(|| final_chunk(flight, room));
        let Some(chunk) = chunk else {
            if let Some(index) = self.rescue(flight, left) {
                return self.repair(flight, now, index, counters);
            }
            let limited = left < mss && flight.sequence.unsent() > 0;
            self.usage.update(flight, limited);
            return self.give_up_frto(flight, now, counters);
        };
        let chunk = flight.send_fresh(now, chunk);
        self.usage.update(flight, flight.in_flight() >= window);
        Some(chunk)
    }

    /// RFC 6675, section 4, NextSeg, if nothing is known to be lost and nothing new can be sent. Selects a segment
    /// below a SACKed one (rule 3), or the last segment once per recovery (rule 4).
    fn rescue(&mut self, flight: &Flight, left: u64) -> Option<usize> {
        let rules = &flight.rules;
        let recovers = flight.phase() == RecoveryPhase::Recovery;
        if !rules.recovery.rescue || !rules.sack() || !recovers {
            return None;
        }
        let una = flight.sequence.una;
        let recover = flight.episode.recover;
        let reached = flight.board.highest_sacked().unwrap_or(una);
        let below = |sent: &SentSegment| sent.end <= reached;
        let open = |sent: &SentSegment| !sent.sacked && !sent.out_again;
        let mut index = flight
            .board
            .iter()
            .position(|sent| below(sent) && open(sent) && sent.start < recover);
        let last = index.is_none() && una > self.rescued;
        if last {
            index = flight.board.iter().rposition(open);
        }
        let sent = flight.board.get(index?)?;
        if u64::from(sent.charge) > left {
            return None;
        }
        if last {
            self.rescued = recover;
        }
        index
    }

    /// Retransmits the first lost segment if the remaining window allows it.
    fn repair_first(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        left: u64,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let index = flight.board.first_unrepaired()?;
        if u64::from(flight.board.get(index)?.charge) > left {
            return None;
        }
        self.repair(flight, now, index, counters)
    }

    fn repair(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        index: usize,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        self.record_repeat(flight, now);
        let chunk = flight.send_again(now, index, flight.repair(), counters);
        // The retransmission of the first segment restarts the timeout (`tcp_xmit_retransmit_queue`).
        if index == 0 && !flight.timer.is_for(Purpose::Reorder) {
            flight.timer.set_timeout(now);
        }
        flight.ensure_timer(now);
        chunk
    }

    /// Falls back to normal recovery if F-RTO needs new data and there is none.
    fn give_up_frto(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let waited = std::mem::take(&mut self.only_new);
        if !waited || flight.sequence.max > flight.episode.recover {
            return None;
        }
        self.frto = false;
        let window = flight.congestion.window();
        let left = window.saturating_sub(flight.in_flight());
        self.repair_first(flight, now, left, counters)
    }
}

/// Exempts the final FIN from the congestion window if the rules do.
fn final_chunk(flight: &Flight, room: u32) -> Option<Chunk> {
    if !flight.rules.frees_fin() {
        return None;
    }
    flight.fresh(room, u64::MAX).filter(|chunk| chunk.fin)
}

//! Early retransmit: recovery with fewer duplicates if few segments are in flight (RFC 5827).

use posthaste_units::{Instant, Span};

use super::PipeRecovery;
use crate::EndpointCounters;
use crate::send::ack::AckEffect;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;
use crate::send::timer::Purpose;

/// Early retransmit (RFC 5827, section 3.2): fewer than four segments are in flight, nothing can follow, and all but one
/// have arrived. RACK decides by time and needs no such count.
pub(super) fn is_early(flight: &mut Flight, now: Instant, news: &AckEffect) -> bool {
    let has_rack = flight.rules.has_rack();
    let rule = flight.rules.recovery.early_retransmit;
    let Some(rule) = rule.filter(|_| !has_rack) else {
        return false;
    };
    let out = flight.board.len() as u32;
    let arrived = flight.board.sacked_segments().max(flight.reno_sacked());
    let few = out < 4 && arrived > 0 && arrived + 1 >= out;
    let reports = !news.advanced || news.sacked > 0;
    let repeated = flight.board.again_segments() > 0;
    if !few || !reports || flight.sequence.unsent() > 0 || repeated {
        return false;
    }
    if !rule.delayed {
        return true;
    }
    if flight.timer.is_for(Purpose::Early) {
        return false;
    }
    // Waits for a quarter of a round trip, in case the segment is only late (`tcp_pause_early_retransmit`). A timer that
    // expires sooner stays, where Linux begins recovery at once: no profile has the delay, so this is not modelled.
    let quarter = flight.timer.rtt.smoothed().unwrap_or_default() / 4;
    let wait = quarter.max(Span::from_millis(2));
    let running = flight.timer.running;
    let sooner = running.is_some_and(|timer| timer.due <= now + wait);
    if !sooner {
        flight.timer.set(now, wait, Purpose::Early);
    }
    false
}

impl PipeRecovery {
    /// Starts recovery after the delay of an early retransmit.
    pub(in crate::send) fn early_expired(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        counters: &mut EndpointCounters,
    ) {
        if flight.phase() < RecoveryPhase::Recovery && !flight.board.is_empty() {
            self.enter_recovery(flight, counters);
            self.reordering.mark_by_count(flight, true, true);
            let out = flight.in_flight();
            flight.reduction.acked(0, out, false);
        }
        flight.rearm(now, false);
    }
}

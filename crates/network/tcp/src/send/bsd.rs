//! BSD's loss recovery: FreeBSD 6.0's tcp_input.c, tcp_output.c and tcp_sack.c.
//!
//! A timeout pulls `next` back, and everything from there is sent again (go-back-N) except SACKed segments. Fast
//! recovery inflates the window (without SACK) or counts the bytes that recovery itself has sent (with SACK). A
//! duplicate acknowledgement counts only if its window equals the last one. This quirk turns one duplicate in three
//! into a mere window update.
//!
//! Simplified: retransmitted segments keep their boundaries (BSD cuts them again), a repair is sent whole or not at
//! all, there is no header prediction (it only saves time), and the bandwidth-delay limiter (`net.inet.tcp.inflight`)
//! is omitted.

use posthaste_units::{Instant, Span};

use super::ack::{Ack, Delivered};
use super::episode::RecoveryPhase;
use super::flight::Flight;
use super::flight::transmit::{Chunk, Repair};
use super::timer::Purpose;
use crate::{EndpointCounters, Offset};

/// State that only BSD's recovery has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BsdRecovery {
    /// Limited transmit: full segments that may be sent beyond the window now.
    pub(super) credit: u32,
    /// Limited transmit: segments sent beyond the window in this run of duplicates, `snd_limited`.
    limited: u32,
    /// With SACK: next offset to send at the start of recovery, `sack_newdata`.
    new_data: Offset,
    /// End of the interval in which an acknowledgement shows that the first timeout was wrong, `t_badrxtwin`.
    bad_until: Option<Instant>,
    /// State before that timeout, restored if it was wrong.
    before: BeforeTimeout,
}

/// State that a first timeout changes, and that an undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct BeforeTimeout {
    /// `snd_recover`.
    recover: Offset,
    /// Fast recovery was active.
    recovering: bool,
}

impl BsdRecovery {
    pub(super) fn acknowledged(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        ack: &Ack<'_>,
        window_must_match: bool,
        counters: &mut EndpointCounters,
    ) {
        self.credit = 0;
        let news = take_sack(flight, ack);
        if ack.number > flight.sequence.una {
            return self.advance(flight, now, ack, counters);
        }
        let same_window = ack.window == flight.peer.size || (!window_must_match && news);
        if ack.carries || !same_window || ack.number < flight.sequence.una {
            counters.uncounted_acks += u64::from(!ack.carries && ack.number == flight.sequence.una);
            if ack.number == flight.sequence.una {
                flight.episode.duplicates = 0;
            }
            return;
        }
        if flight.board.is_empty() || !flight.timer.is_for(Purpose::Retransmit) {
            flight.episode.duplicates = 0;
            return;
        }
        counters.duplicate_acks += 1;
        flight.episode.duplicates += 1;
        self.duplicate(flight, now, counters);
    }

    fn duplicate(&mut self, flight: &mut Flight, now: Instant, counters: &mut EndpointCounters) {
        let mss = flight.rules.mss();
        let recovering = flight.phase() == RecoveryPhase::Recovery;
        let threshold = threshold(flight);
        if recovering || flight.episode.duplicates > threshold {
            // One more segment has left the network. With SACK the window grows only while less than the threshold is
            // in flight.
            let window = flight.congestion.window();
            if flight.rules.sack() && recovering {
                let out = (flight.sequence.next - reached(flight).min(flight.sequence.next))
                    + flight.board.again();
                if out < flight.congestion.threshold() {
                    let most = flight.congestion.threshold();
                    flight.congestion.set_window((window + mss).min(most));
                }
            } else {
                flight.congestion.set_window(window + mss);
            }
        } else if flight.episode.duplicates == threshold {
            self.recover(flight, now, counters);
        } else if flight.rules.recovery.limited_transmit {
            if flight.episode.duplicates == 1 {
                self.limited = 0;
            }
            self.credit = flight.episode.duplicates - self.limited;
        }
    }

    fn recover(&mut self, flight: &mut Flight, now: Instant, counters: &mut EndpointCounters) {
        let mss = flight.rules.mss();
        if !flight.rules.sack() && flight.sequence.una <= flight.episode.recover {
            flight.episode.duplicates = 0;
            return;
        }
        counters.recoveries += 1;
        flight
            .congestion
            .lost(flight.peer.size.min(flight.congestion.window()));
        flight.episode.phase = RecoveryPhase::Recovery;
        flight.episode.recover = flight.sequence.max;
        flight.board.forget_repeats();
        if flight.rules.sack() {
            self.new_data = flight.sequence.next;
            flight.congestion.set_window(mss);
        } else {
            let beyond = flight.episode.duplicates.saturating_sub(self.limited);
            let window = flight.congestion.threshold() + mss * u64::from(beyond);
            flight.congestion.set_window(window);
            flight.episode.force = true;
        }
        flight.rearm(now, false);
    }

    /// Handles an acknowledgement of new data.
    fn advance(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        ack: &Ack<'_>,
        counters: &mut EndpointCounters,
    ) {
        let mss = flight.rules.mss();
        let acked = ack.number - flight.sequence.una;
        let recovering = flight.phase() == RecoveryPhase::Recovery;
        let ends = ack.number >= flight.episode.recover;
        if recovering && ends {
            let threshold = flight.congestion.threshold();
            let left = flight.sequence.max - ack.number;
            let window = if threshold > left {
                left + mss
            } else {
                threshold
            };
            flight.congestion.set_window(window);
        } else if recovering && !flight.rules.sack() {
            let window = flight.congestion.window().saturating_sub(acked) + mss;
            flight.congestion.set_window(window);
            flight.episode.force = true;
        }
        flight.episode.duplicates = 0;
        // The first acknowledgement within half a round trip of the timeout cannot be of the retransmission.
        if flight.timer.backoff == 1 && self.bad_until.is_some_and(|until| now < until) {
            self.undo(flight, counters);
        }
        self.bad_until = None;
        let delivered = take_off(flight, now, ack);
        if flight.phase() != RecoveryPhase::Recovery {
            let mut progress = flight.progress(now, delivered, ack);
            progress.in_flight = flight.sequence.up_to_next();
            flight.congestion.acked(&progress);
        } else if ends {
            flight.episode.phase = RecoveryPhase::Open;
            flight.congestion.finished();
        }
        flight.sequence.una = ack.number;
        flight.sequence.next = flight.sequence.next.max(flight.sequence.una);
        if recovering && !ends && flight.rules.sack() {
            let more = if acked / mss > 2 { 2 } else { 1 };
            let window = flight.board.again()
                + (flight.sequence.next - self.new_data.min(flight.sequence.next))
                + more * mss;
            flight
                .congestion
                .set_window(window.min(flight.congestion.threshold()));
        }
        if flight.phase() == RecoveryPhase::Loss && ends {
            flight.episode.phase = RecoveryPhase::Open;
            flight.congestion.finished();
            flight.board.forget_repeats();
        }
        if flight.rules.sack() {
            flight.episode.recover = flight.episode.recover.max(flight.sequence.una);
        }
        flight.rearm(now, true);
        if is_early(flight) {
            self.recover(flight, now, counters);
        }
    }

    fn undo(&mut self, flight: &mut Flight, counters: &mut EndpointCounters) {
        counters.undone += 1;
        flight.congestion.undo();
        flight.episode.recover = self.before.recover;
        flight.episode.phase = if self.before.recovering {
            RecoveryPhase::Recovery
        } else {
            RecoveryPhase::Open
        };
        flight.board.forget_repeats();
        flight.sequence.next = flight.sequence.max;
    }

    /// Handles an expired retransmission timer (`tcp_timer_rexmt`).
    pub(super) fn timed_out(&mut self, flight: &mut Flight, now: Instant) {
        if flight.timer.backoff == 1 {
            let ticks = |span: Span| span.as_nanos() / flight.rules.tick.as_nanos().max(1);
            let half = ticks(flight.timer.rtt.smoothed().unwrap_or_default()) / 2;
            self.bad_until = Some(now + flight.rules.tick * half);
            self.before = BeforeTimeout {
                recover: flight.episode.recover,
                recovering: flight.phase() == RecoveryPhase::Recovery,
            };
        }
        flight.board.forget_sacks();
        flight.board.forget_repeats();
        flight.sequence.next = flight.sequence.una;
        flight.episode.recover = flight.sequence.max;
        flight.episode.phase = RecoveryPhase::Loss;
        flight.episode.duplicates = 0;
        flight.episode.force = false;
        flight
            .congestion
            .timed_out(flight.peer.size.min(flight.congestion.window()));
    }

    pub(super) fn transmit(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        if std::mem::take(&mut flight.episode.force) && !flight.board.is_empty() {
            return flight.send_again(now, 0, Repair::Fast, counters);
        }
        if flight.rules.sack() && flight.phase() == RecoveryPhase::Recovery {
            return self.transmit_by_sack(flight, now, room, counters);
        }
        let sent = flight.sequence.up_to_next();
        let window = flight.congestion.window();
        if flight.sequence.next < flight.sequence.max {
            return go_back(flight, now, window.min(flight.peer.size), counters);
        }
        let mss = flight.rules.mss();
        let beyond = sent + u64::from(self.credit) * mss;
        let by_credit = beyond > window;
        let chunk = flight.fresh(room, window.max(beyond) - sent)?;
        if by_credit && self.credit > 0 {
            self.credit -= 1;
            self.limited += 1;
        }
        Some(flight.send_fresh(now, chunk))
    }

    /// Sends holes first, then new data, within the window less the bytes sent in recovery.
    fn transmit_by_sack(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let reached = reached(flight);
        let window = flight.congestion.window();
        let again = flight.board.again();
        let hole = flight.board.iter().position(|sent| {
            sent.start < reached.min(flight.episode.recover) && !sent.sacked && !sent.out_again
        });
        let left = window.min(flight.peer.size).saturating_sub(again);
        if let Some(index) = hole
            && let Some(sent) = flight.board.get(index)
            && left >= sent.end - sent.start - u64::from(sent.fin)
        {
            let chunk = flight.send_again(now, index, Repair::Fast, counters);
            flight.ensure_timer(now);
            return chunk;
        }
        let left = if again == 0 {
            window.saturating_sub(flight.sequence.up_to_next())
        } else {
            let new = flight.sequence.next - self.new_data.min(flight.sequence.next);
            window.saturating_sub(new + again)
        };
        let chunk = flight.fresh(room, left)?;
        Some(flight.send_fresh(now, chunk))
    }
}

/// Marks SACKed segments. Returns true if any is new. There are no holes below the acknowledgement, and a D-SACK is
/// ignored.
fn take_sack(flight: &mut Flight, ack: &Ack<'_>) -> bool {
    let mut news = false;
    for (start, end) in ack.blocks.iter().copied() {
        if start <= ack.number || end > flight.sequence.max {
            continue;
        }
        for index in flight.board.at(start)..flight.board.len() {
            let Some(sent) = flight.board.get(index).filter(|sent| sent.end <= end) else {
                break;
            };
            if sent.start >= start {
                news |= flight.board.mark_sacked(index);
            }
        }
    }
    news
}

/// End of the highest SACKed segment: `snd_fack`.
fn reached(flight: &Flight) -> Offset {
    flight.board.highest_sacked().unwrap_or(flight.sequence.una)
}

/// Duplicate threshold. Early retransmit lowers it if fewer duplicates can arrive (RFC 5827, section 3.2).
fn threshold(flight: &Flight) -> u32 {
    let out = flight.board.len() as u32;
    let few = flight.rules.recovery.early_retransmit.is_some()
        && out < 4
        && flight.sequence.unsent() == 0;
    if few {
        flight
            .rules
            .recovery
            .threshold
            .min(out.saturating_sub(1).max(1))
    } else {
        flight.rules.recovery.threshold
    }
}

/// Early retransmit by SACK (RFC 5827, section 3.2): all segments but one have arrived, as an acknowledgement of
/// new data reports.
fn is_early(flight: &Flight) -> bool {
    let (out, come) = (flight.board.len() as u32, flight.board.sacked_segments());
    flight.rules.recovery.early_retransmit.is_some()
        && flight.phase() == RecoveryPhase::Open
        && flight.sequence.unsent() == 0
        && (2..4).contains(&out)
        && come + 1 == out
}

/// Removes acknowledged segments and takes the round-trip time.
fn take_off(flight: &mut Flight, now: Instant, ack: &Ack<'_>) -> Delivered {
    let (mut segments, mut timed) = (0, None);
    while let Some(sent) = flight.board.acknowledge(ack.number) {
        segments += 1;
        timed = (sent.repeats == 0).then_some(sent.sent);
    }
    let rtt = match ack.echo {
        Some((_, rtt)) => Some(rtt),
        None => timed.map(|sent| now.saturating_since(sent)),
    };
    if let Some(rtt) = rtt {
        flight.timer.sample(rtt, ack.number, flight.sequence.max);
    }
    Delivered {
        bytes: ack.number - flight.sequence.una,
        segments,
    }
}

/// Retransmits from `next` on, skipping SACKed segments.
fn go_back(
    flight: &mut Flight,
    now: Instant,
    window: u64,
    counters: &mut EndpointCounters,
) -> Option<Chunk> {
    let first = flight.board.at(flight.sequence.next);
    let index = (first..flight.board.len())
        .find(|index| flight.board.get(*index).is_some_and(|sent| !sent.sacked));
    let Some(index) = index else {
        flight.sequence.next = flight.sequence.max;
        return None;
    };
    let sent = flight.board.get(index)?;
    let (start, end) = (sent.start, sent.end);
    let data_end = end - u64::from(sent.fin);
    if start > flight.sequence.una && data_end - flight.sequence.una > window {
        return None;
    }
    flight.sequence.next = end;
    let chunk = flight.send_again(now, index, flight.repair(), counters);
    flight.ensure_timer(now);
    chunk
}

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

use super::episode::RecoveryPhase;
use super::timer::Purpose;
use super::transmit::{Chunk, Repair};
use super::{Ack, Sender};
use crate::{EndpointCounters, Offset};

impl Sender {
    pub(super) fn bsd_acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        window_must_match: bool,
        counters: &mut EndpointCounters,
    ) {
        let news = self.bsd_take_sack(ack);
        if ack.number > self.una {
            return self.bsd_advance(now, ack, counters);
        }
        let same_window = ack.window == self.window || (!window_must_match && news);
        if ack.carries || !same_window || ack.number < self.una {
            counters.uncounted_acks += u64::from(!ack.carries && ack.number == self.una);
            if ack.number == self.una {
                self.episode.duplicates = 0;
            }
            return;
        }
        if self.board.is_empty() || !self.timer_is(Purpose::Retransmit) {
            self.episode.duplicates = 0;
            return;
        }
        counters.duplicate_acks += 1;
        self.episode.duplicates += 1;
        self.bsd_duplicate(now, counters);
    }

    /// Marks SACKed segments. Returns true if any is new. There are no holes below the acknowledgement, and a D-SACK is
    /// ignored.
    fn bsd_take_sack(&mut self, ack: &Ack<'_>) -> bool {
        let mut news = false;
        for (start, end) in ack.blocks.iter().copied() {
            if start <= ack.number || end > self.max {
                continue;
            }
            for index in self.board.at(start)..self.board.len() {
                let Some(sent) = self.board.get(index).filter(|sent| sent.end <= end) else {
                    break;
                };
                if sent.start >= start {
                    news |= self.board.mark_sacked(index);
                }
            }
        }
        news
    }

    /// End of the highest SACKed segment: `snd_fack`.
    fn bsd_reached(&self) -> Offset {
        self.board.highest_sacked().unwrap_or(self.una)
    }

    /// Duplicate threshold. Early retransmit lowers it if fewer duplicates can arrive (RFC 5827, section 3.2).
    fn bsd_threshold(&self) -> u32 {
        let out = self.board.len() as u32;
        let few = self.rules.early_retransmit.is_some() && out < 4 && self.unsent() == 0;
        if few {
            self.rules.threshold.min(out.saturating_sub(1).max(1))
        } else {
            self.rules.threshold
        }
    }

    /// Early retransmit by SACK (RFC 5827, section 3.2): all segments but one have arrived, as an acknowledgement of
    /// new data reports.
    fn bsd_is_early(&self) -> bool {
        let (out, come) = (self.board.len() as u32, self.board.sacked_segments());
        self.rules.early_retransmit.is_some()
            && self.phase() == RecoveryPhase::Open
            && self.unsent() == 0
            && (2..4).contains(&out)
            && come + 1 == out
    }

    fn bsd_duplicate(&mut self, now: Instant, counters: &mut EndpointCounters) {
        let mss = u64::from(self.agreed.mss);
        let recovering = self.phase() == RecoveryPhase::Recovery;
        let threshold = self.bsd_threshold();
        if recovering || self.episode.duplicates > threshold {
            let window = self.congestion.window();
            if self.agreed.sack && recovering {
                let out = (self.next - self.bsd_reached().min(self.next)) + self.board.again();
                if out < self.congestion.threshold() {
                    let most = self.congestion.threshold();
                    self.congestion.set_window((window + mss).min(most));
                }
            } else {
                self.congestion.set_window(window + mss);
            }
        } else if self.episode.duplicates == threshold {
            self.bsd_recover(now, counters);
        } else if self.rules.limited_transmit {
            if self.episode.duplicates == 1 {
                self.episode.limited = 0;
            }
            self.episode.credit = self.episode.duplicates - self.episode.limited;
        }
    }

    fn bsd_recover(&mut self, now: Instant, counters: &mut EndpointCounters) {
        let mss = u64::from(self.agreed.mss);
        if !self.agreed.sack && self.una <= self.episode.recover {
            self.episode.duplicates = 0;
            return;
        }
        counters.recoveries += 1;
        self.congestion
            .lost(self.window.min(self.congestion.window()));
        self.episode.phase = RecoveryPhase::Recovery;
        self.episode.recover = self.max;
        self.board.forget_repeats();
        if self.agreed.sack {
            self.episode.new_data = self.next;
            self.congestion.set_window(mss);
        } else {
            let beyond = self.episode.duplicates.saturating_sub(self.episode.limited);
            let window = self.congestion.threshold() + mss * u64::from(beyond);
            self.congestion.set_window(window);
            self.episode.force = true;
        }
        self.rearm(now, false);
    }

    /// Handles an acknowledgement of new data.
    fn bsd_advance(&mut self, now: Instant, ack: &Ack<'_>, counters: &mut EndpointCounters) {
        let mss = u64::from(self.agreed.mss);
        let acked = ack.number - self.una;
        let recovering = self.phase() == RecoveryPhase::Recovery;
        let ends = ack.number >= self.episode.recover;
        if recovering && ends {
            let threshold = self.congestion.threshold();
            let left = self.max - ack.number;
            let window = if threshold > left {
                left + mss
            } else {
                threshold
            };
            self.congestion.set_window(window);
        } else if recovering && !self.agreed.sack {
            let window = self.congestion.window().saturating_sub(acked) + mss;
            self.congestion.set_window(window);
            self.episode.force = true;
        }
        self.episode.duplicates = 0;
        if self.backoff == 1 && self.episode.bad_until.is_some_and(|until| now < until) {
            self.bsd_undo(counters);
        }
        self.episode.bad_until = None;
        let delivered = self.bsd_take_off(now, ack);
        if self.phase() != RecoveryPhase::Recovery {
            let mut progress = self.progress(now, delivered, ack);
            debug_assert!(self.next >= self.una, "the flight is negative");
            progress.in_flight = self.next.saturating_sub(self.una);
            self.congestion.acked(&progress);
        } else if ends {
            self.episode.phase = RecoveryPhase::Open;
            self.congestion.finished();
        }
        self.una = ack.number;
        self.next = self.next.max(self.una);
        if recovering && !ends && self.agreed.sack {
            let more = if acked / mss > 2 { 2 } else { 1 };
            let window = self.board.again()
                + (self.next - self.episode.new_data.min(self.next))
                + more * mss;
            self.congestion
                .set_window(window.min(self.congestion.threshold()));
        }
        if self.phase() == RecoveryPhase::Loss && ends {
            self.episode.phase = RecoveryPhase::Open;
            self.congestion.finished();
            self.board.forget_repeats();
        }
        if self.agreed.sack {
            self.episode.recover = self.episode.recover.max(self.una);
        }
        self.rearm(now, true);
        if self.bsd_is_early() {
            self.bsd_recover(now, counters);
        }
    }

    /// Removes acknowledged segments and takes the round-trip time. Returns bytes and segments.
    fn bsd_take_off(&mut self, now: Instant, ack: &Ack<'_>) -> (u64, u32) {
        let (mut segments, mut timed) = (0, None);
        while let Some(sent) = self.board.acknowledge(ack.number) {
            segments += 1;
            timed = (sent.repeats == 0).then_some(sent.sent);
        }
        let rtt = match ack.echo {
            Some((_, rtt)) => Some(rtt),
            None => timed.map(|sent| now.saturating_since(sent)),
        };
        if let Some(rtt) = rtt {
            self.sample(rtt, ack);
        }
        (ack.number - self.una, segments)
    }

    fn bsd_undo(&mut self, counters: &mut EndpointCounters) {
        counters.undone += 1;
        self.congestion.undo();
        self.episode.recover = self.episode.before.0;
        self.episode.phase = if self.episode.before.1 {
            RecoveryPhase::Recovery
        } else {
            RecoveryPhase::Open
        };
        self.board.forget_repeats();
        self.next = self.max;
    }

    /// Handles an expired retransmission timer (`tcp_timer_rexmt`).
    pub(super) fn bsd_timed_out(&mut self, now: Instant) {
        if self.backoff == 1 {
            let ticks = |span: Span| span.as_nanos() / self.tick.as_nanos().max(1);
            let half = ticks(self.rtt.smoothed().unwrap_or_default()) / 2;
            self.episode.bad_until = Some(now + self.tick * half);
            self.episode.before = (
                self.episode.recover,
                self.phase() == RecoveryPhase::Recovery,
            );
        }
        self.board.forget_sacks();
        self.board.forget_repeats();
        self.next = self.una;
        self.episode.recover = self.max;
        self.episode.phase = RecoveryPhase::Loss;
        self.episode.duplicates = 0;
        self.episode.force = false;
        self.congestion
            .timed_out(self.window.min(self.congestion.window()));
    }

    pub(super) fn bsd_transmit(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        if std::mem::take(&mut self.episode.force) && !self.board.is_empty() {
            return self.send_again(now, 0, Repair::Fast, counters);
        }
        if self.agreed.sack && self.phase() == RecoveryPhase::Recovery {
            return self.bsd_transmit_by_sack(now, room, counters);
        }
        let flight = self.next - self.una;
        let window = self.congestion.window();
        if self.next < self.max {
            return self.bsd_go_back(now, window.min(self.window), counters);
        }
        let mss = u64::from(self.agreed.mss);
        let beyond = flight + u64::from(self.episode.credit) * mss;
        let by_credit = beyond > window;
        let chunk = self.fresh(room, window.max(beyond) - flight)?;
        if by_credit && self.episode.credit > 0 {
            self.episode.credit -= 1;
            self.episode.limited += 1;
        }
        Some(self.send_fresh(now, chunk))
    }

    /// Retransmits from `next` on, skipping SACKed segments.
    fn bsd_go_back(
        &mut self,
        now: Instant,
        window: u64,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let first = self.board.at(self.next);
        let index = (first..self.board.len())
            .find(|index| self.board.get(*index).is_some_and(|sent| !sent.sacked));
        let Some(index) = index else {
            self.next = self.max;
            return None;
        };
        let sent = self.board.get(index)?;
        let (start, end) = (sent.start, sent.end);
        let data_end = end - u64::from(sent.fin);
        if start > self.una && data_end - self.una > window {
            return None;
        }
        self.next = end;
        let chunk = self.send_again(now, index, self.repair(), counters);
        self.ensure_timer(now);
        chunk
    }

    /// Sends holes first, then new data, within the window less the bytes sent in recovery.
    fn bsd_transmit_by_sack(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let reached = self.bsd_reached();
        let window = self.congestion.window();
        let again = self.board.again();
        let hole = self.board.iter().position(|sent| {
            sent.start < reached.min(self.episode.recover) && !sent.sacked && !sent.out_again
        });
        let left = window.min(self.window).saturating_sub(again);
        if let Some(index) = hole
            && let Some(sent) = self.board.get(index)
            && left >= sent.end - sent.start - u64::from(sent.fin)
        {
            let chunk = self.send_again(now, index, Repair::Fast, counters);
            self.ensure_timer(now);
            return chunk;
        }
        let left = if again == 0 {
            window.saturating_sub(self.next - self.una)
        } else {
            let new = self.next - self.episode.new_data.min(self.next);
            window.saturating_sub(new + again)
        };
        let chunk = self.fresh(room, left)?;
        Some(self.send_fresh(now, chunk))
    }
}

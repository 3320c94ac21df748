//! Recovery with marks and a pipe: Linux (tcp_input.c, `tcp_ack` and `tcp_fastretrans_alert`) and, with other rules,
//! RFC 6675 and RFC 6582.
//!
//! Detectors mark segments as lost, the scoreboard counts bytes in flight, and marked segments are sent again before
//! anything new. Without SACK each duplicate stands for an arrived segment. `rack` marks by time, and `undo` reverts
//! reductions.
//!
//! Not modelled: congestion signals (ECN), path MTU probes, SACK reneging beyond the effect of a timeout, and Linux's
//! collapsing of segments. A segment is SACKed as a whole or not at all.

use posthaste_units::{Instant, Span};

use super::congestion::GrowthLimit;
use super::episode::RecoveryPhase;
use super::timer::Purpose;
use super::transmit::Chunk;
use super::{Ack, Sender};
use crate::profile::{RecoveryEngine, RoundTrips};
use crate::{EndpointCounters, Offset};

/// Effect of one acknowledgement: Linux's FLAG_*.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckEffect {
    /// It moved `una`.
    pub(super) advanced: bool,
    /// It ended fast recovery.
    ended: bool,
    /// A mere repetition.
    pub(super) duplicate: bool,
    /// Charges and segments newly acknowledged or SACKed.
    pub(super) delivered: (u64, u32),
    pub(super) sacked: u32,
    /// Some of these were never sent again and lie before `recover`: FLAG_ORIG_SACK_ACKED.
    pub(super) original: bool,
    pub(super) dsack: bool,
    /// A retransmission was marked lost.
    pub(super) repeat_lost: bool,
    /// The retransmission timer must be restarted.
    pub(super) timer: bool,
    /// Transmission times of the first and last acknowledged segments, if all were sent once.
    sent: Option<(Instant, Instant)>,
    /// Transmission time of the first SACKed segment, if it was sent once.
    sack_sent: Option<Instant>,
    /// The lowest offset acknowledged late without a retransmission.
    late: Option<Offset>,
}

impl Sender {
    pub(super) fn pipe_acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        opened: bool,
        counters: &mut EndpointCounters,
    ) {
        let flight = self.in_flight();
        let marked = self.board.marked();
        let had_nothing = self.board.is_empty();
        let una = self.una;
        let mut news = AckEffect::default();
        self.episode.only_new = false;
        if !had_nothing || ack.number != una || !ack.blocks.is_empty() {
            self.listen(now, ack, &mut news, counters);
        }
        if !had_nothing && !news.advanced && !ack.carries {
            news.duplicate = !opened && ack.number == una && !news.dsack;
            counters.duplicate_acks += u64::from(news.duplicate);
            counters.uncounted_acks += u64::from(!news.duplicate);
        }
        self.rack_learn(ack, &news);
        self.probe_answered(ack, &news);
        if had_nothing {
            self.try_undo_dsack(counters);
            return;
        }
        if news.duplicate || news.sacked > 0 || news.dsack || self.phase() != RecoveryPhase::Open {
            self.alert(now, una, &mut news, counters);
        }
        if news.timer {
            self.rearm(now, true);
        }
        let clean = news.advanced && self.board.marked() == marked;
        self.control(now, ack, &news, (flight, clean));
    }

    /// Processes the information of an acknowledgement about segments in flight.
    fn listen(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        let reached = self.board.highest_sacked().unwrap_or(self.una);
        news.advanced = ack.number > self.una;
        self.take_sack(now, ack, news, counters);
        self.take_off(now, ack, news);
        self.measure(now, ack, news);
        if let Some(late) = news.late.filter(|late| *late < reached) {
            self.saw_reordering(late, reached);
        }
    }

    /// Updates the congestion window after an acknowledgement (`tcp_cong_control`).
    fn control(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        news: &AckEffect,
        (flight, clean): (u64, bool),
    ) {
        if self.phase() == RecoveryPhase::Recovery {
            let out = self.in_flight();
            let window = self.reduction.acked(news.delivered.0, out, clean);
            self.congestion.set_window(window);
        } else if self.may_grow(news) && !(news.ended && self.reduction.is_at_once()) {
            // RFC 6582, section 3.2, step 3: the acknowledgement that ends recovery sets the window without further
            // growth.
            let mut progress = self.progress(now, news.delivered, ack);
            progress.rtt = news.sent.map(|sent| now.saturating_since(sent.1));
            progress.in_flight = match self.limit {
                GrowthLimit::Validated => self.most_out as u64 * u64::from(self.agreed.mss),
                GrowthLimit::Full | GrowthLimit::Ignored => flight,
            };
            self.congestion.acked(&progress);
        }
    }

    /// Returns true if the acknowledgement may raise the window. With reordering Linux counts data that SACK reports at
    /// once, since the acknowledgement that follows covers it no more (`tcp_may_raise_cwnd`).
    fn may_grow(&self, news: &AckEffect) -> bool {
        let reordered = self.episode.threshold > self.rules.threshold;
        let by_sack = reordered && self.limit == GrowthLimit::Validated;
        news.advanced || (by_sack && news.sacked > 0)
    }

    /// Marks SACKed segments, and detects a D-SACK (RFC 2883; Linux `tcp_sacktag_write_queue`).
    fn take_sack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        let mut blocks = ack.blocks;
        if let Some((start, end)) = blocks.first().copied() {
            let inside = blocks
                .get(1)
                .is_some_and(|next| next.0 <= start && end <= next.1);
            if start < ack.number || inside {
                blocks = &blocks[1..];
                news.dsack = true;
                match self.episode.forgiven.checked_sub(1) {
                    Some(left) => self.episode.forgiven = left,
                    None => counters.spurious += 1,
                }
                let counted = self.episode.undo.is_some_and(|undo| end > undo);
                if counted {
                    self.episode.undo_repeats = self.episode.undo_repeats.saturating_sub(1);
                }
            }
        }
        for (start, end) in blocks.iter().copied() {
            if start < ack.number || end > self.max {
                continue;
            }
            for index in self.board.at(start)..self.board.len() {
                let Some(sent) = self
                    .board
                    .get(index)
                    .filter(|sent| sent.end <= end)
                    .copied()
                else {
                    break;
                };
                if sent.start >= start && self.board.mark_sacked(index) {
                    self.heard_of(now, &sent, news);
                    news.sacked += 1;
                    if sent.repeats == 0 {
                        news.sack_sent.get_or_insert(sent.sent);
                    }
                }
            }
        }
    }

    /// Handles a segment that is acknowledged, or SACKed for the first time.
    fn heard_of(
        &mut self,
        now: Instant,
        sent: &super::scoreboard::SentSegment,
        news: &mut AckEffect,
    ) {
        news.delivered.0 += u64::from(sent.charge);
        news.delivered.1 += 1;
        if sent.repeats == 0 {
            news.late = Some(news.late.map_or(sent.start, |late| late.min(sent.start)));
            news.original |= sent.end <= self.episode.recover;
        }
        self.rack_heard(now, sent);
    }

    /// Removes acknowledged segments (`tcp_clean_rtx_queue`).
    fn take_off(&mut self, now: Instant, ack: &Ack<'_>, news: &mut AckEffect) {
        if !news.advanced {
            return;
        }
        let (mut segments, mut once) = (0, true);
        while let Some(sent) = self.board.acknowledge(ack.number) {
            segments += 1;
            once &= sent.repeats == 0;
            if !sent.sacked {
                let first = news.sent.map_or(sent.sent, |sent| sent.0);
                news.sent = Some((first, sent.sent));
                self.heard_of(now, &sent, news);
            }
        }
        news.sent = news.sent.filter(|_| once);
        news.timer |= segments > 0;
        self.una = ack.number;
        self.next = self.max.max(self.una);
        if !self.agreed.sack && segments > 0 {
            // One segment fills the hole. Duplicates have reported the rest (`tcp_remove_reno_sacks`).
            let told = self.episode.duplicates;
            self.episode.duplicates = told.saturating_sub(segments - 1);
            let fresh = segments.saturating_sub(told).max(1);
            let bytes = u64::from(fresh) * u64::from(self.agreed.mss);
            news.delivered.0 = news.delivered.0.min(bytes);
            news.delivered.1 = news.delivered.1.min(fresh);
        }
    }

    /// Measures the round-trip time (Linux `tcp_ack_update_rtt`): from a segment sent once, else from the echoed
    /// timestamp, and never from a segment that may have been sent twice. Stacks until 2014 preferred the timestamp.
    fn measure(&mut self, now: Instant, ack: &Ack<'_>, news: &mut AckEffect) {
        let echoed = ack.echo.filter(|_| news.advanced);
        let by_echo = echoed.map(|(_, rtt)| rtt.max(self.tick));
        let first = news.sent.map(|sent| sent.0).or(news.sack_sent);
        let by_segment = first.map(|sent| now.saturating_since(sent));
        let rtt = match self.round_trips {
            RoundTrips::ByEcho if !news.advanced => None,
            RoundTrips::ByEcho => by_echo.or(by_segment),
            RoundTrips::BySegment => by_segment.or(by_echo),
        };
        if let Some(rtt) = rtt {
            self.sample(rtt, ack);
        }
        let head = self
            .board
            .get(0)
            .map(|first| now.saturating_since(first.sent));
        if let (Some(sent), Some(age)) = (news.sack_sent, head) {
            news.timer |= now.saturating_since(sent) > age;
        }
    }

    /// Advances the recovery phase (`tcp_fastretrans_alert`).
    fn alert(
        &mut self,
        now: Instant,
        una: Offset,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        if self.phase() == RecoveryPhase::Open {
            self.episode.first_repeat = None;
        } else if self.una >= self.episode.recover && self.phase() == RecoveryPhase::Recovery {
            if !self.agreed.sack {
                self.episode.duplicates = 0;
            }
            if self.try_undo_recovery(counters) {
                return;
            }
            self.finish_recovery();
            news.ended = true;
        }
        match self.phase() {
            RecoveryPhase::Recovery => {
                if !news.advanced {
                    self.add_duplicate(news);
                } else if self.try_undo_partial(una, counters) {
                    return;
                }
                if self.try_undo_dsack(counters) {
                    self.keep_open();
                }
                self.identify(now, news);
                if self.phase() != RecoveryPhase::Recovery {
                    if !self.is_time_to_recover(now, news) {
                        return;
                    }
                    self.enter_recovery(counters);
                }
            }
            RecoveryPhase::Loss => {
                self.in_loss(news, counters);
                self.identify(now, news);
                if self.phase() != RecoveryPhase::Open && !news.repeat_lost {
                    return;
                }
                if self.phase() == RecoveryPhase::Open {
                    return self.suspect(now, news, counters);
                }
            }
            RecoveryPhase::Open | RecoveryPhase::Disorder => {
                return self.suspect(now, news, counters);
            }
        }
        self.mark_by_count(news.duplicate || news.advanced || news.sacked > 0, false);
    }

    /// Checks outside recovery if the acknowledgement proves a loss.
    fn suspect(&mut self, now: Instant, news: &mut AckEffect, counters: &mut EndpointCounters) {
        if !self.agreed.sack && news.advanced {
            self.episode.duplicates = 0;
        }
        self.add_duplicate(news);
        self.try_undo_dsack(counters);
        self.identify(now, news);
        if self.is_time_to_recover(now, news) {
            self.enter_recovery(counters);
            self.mark_by_count(true, true);
        } else {
            self.keep_open();
        }
    }

    /// Starts recovery (`tcp_enter_recovery`).
    pub(super) fn enter_recovery(&mut self, counters: &mut EndpointCounters) {
        counters.recoveries += 1;
        self.begin_undo();
        let window = self.congestion.window();
        self.congestion.finished();
        self.congestion.lost(self.basis());
        let threshold = self.congestion.threshold();
        self.reduction.begin(window, threshold, self.agreed.mss);
        // RFC 6675, section 5, (4.3): the first segment leaves regardless of the bytes in flight. The windows of the
        // other rules allow it anyway.
        self.episode.force = self.reduction.is_at_once();
        self.episode.recover = self.max;
        self.episode.rescued = 0;
        self.episode.phase = RecoveryPhase::Recovery;
        self.episode.probe = None;
        if self.timer_is(Purpose::Early) {
            self.timer = None;
        }
    }

    /// Basis of the new threshold. With BSD's rule, the smaller window. Otherwise the bytes sent and not acknowledged,
    /// without limited transmit (RFC 5681, equation 4).
    pub(super) fn basis(&self) -> u64 {
        if self.usable_basis {
            return self.congestion.window().min(self.window);
        }
        let sent = match self.phase() {
            RecoveryPhase::Disorder => self.episode.recover.max(self.una),
            _ => self.max,
        };
        debug_assert!(sent >= self.una, "acknowledged data is in flight");
        sent - self.una
    }

    /// Sets the window at the end of recovery (`tcp_end_cwnd_reduction`).
    fn finish_recovery(&mut self) {
        self.congestion.set_window(self.reduction.end());
    }

    /// Sets `Disorder` while segments are SACKed, lost or sent again, else `Open` (`tcp_try_keep_open`).
    pub(super) fn keep_open(&mut self) {
        let strange = self.board.sacked_segments() > 0
            || self.reno_sacked() > 0
            || self.board.lost_segments() > 0
            || self.board.again_segments() > 0;
        let phase = if strange {
            RecoveryPhase::Disorder
        } else {
            RecoveryPhase::Open
        };
        if self.episode.phase != phase {
            self.episode.phase = phase;
            self.episode.recover = self.max;
        }
    }

    /// Raises the duplicate threshold after reordering: a segment arrived late without a retransmission.
    pub(super) fn saw_reordering(&mut self, low: Offset, reached: Offset) {
        let mss = u64::from(self.agreed.mss).max(1);
        debug_assert!(
            low <= reached,
            "a late segment lies beyond those that overtook it"
        );
        let distance = reached.saturating_sub(low).div_ceil(mss).min(300) as u32;
        self.episode.threshold = self.episode.threshold.max(distance);
        self.episode.reordered = true;
    }

    /// Handles an expired retransmission timer (`tcp_enter_loss`, `tcp_timeout_mark_lost`).
    pub(super) fn pipe_timed_out(&mut self, now: Instant) {
        if !self.agreed.sack {
            self.episode.duplicates = 0;
        }
        let fresh = self.phase() <= RecoveryPhase::Disorder
            || self.una >= self.episode.recover
            || (self.phase() == RecoveryPhase::Loss && self.in_row == 1);
        if fresh {
            self.congestion.finished();
            self.congestion.timed_out(self.basis());
            self.begin_undo();
        } else {
            self.congestion.collapse();
        }
        if self.board.get(0).is_some_and(|first| first.sacked) {
            self.board.forget_sacks();
        }
        let recent = if self.has_rack() {
            self.episode.rack.rtt
        } else {
            Span::ZERO
        };
        for index in 0..self.board.len() {
            let young = self
                .board
                .get(index)
                .is_some_and(|sent| index > 0 && now.saturating_since(sent.sent) < recent);
            if !young {
                self.board.mark_lost(index);
            }
        }
        let mss = u64::from(self.agreed.mss);
        self.congestion.set_window(self.in_flight() + mss);
        self.episode.phase = RecoveryPhase::Loss;
        self.episode.recover = self.max;
        self.episode.force = true;
        self.episode.only_new = false;
        self.episode.probe = None;
        self.episode.frto = self.rules.frto && (fresh || self.in_row > 1);
    }

    pub(super) fn pipe_transmit(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        if std::mem::take(&mut self.episode.probing) {
            return self.send_probe(now, room, counters);
        }
        let window = self.congestion.window();
        let left = window.saturating_sub(self.in_flight());
        let forced = std::mem::take(&mut self.episode.force);
        if !self.episode.only_new && self.board.has_unrepaired() {
            let left = if forced { u64::MAX } else { left };
            return self.repair_first(now, left, counters);
        }
        if self.defers(now, left) {
            self.validate(true);
            return None;
        }
        let counted = self.counting == super::Counting::Segments;
        let allowed = if !counted {
            left
        } else if left >= u64::from(self.agreed.mss) {
            u64::MAX
        } else {
            0
        };
        let chunk = self.fresh(room, allowed).or_else(|| self.final_chunk(room));
        let Some(chunk) = chunk else {
            if let Some(index) = self.rescue(left) {
                return self.pipe_repair(now, index, counters);
            }
            self.validate(left < u64::from(self.agreed.mss) && self.unsent() > 0);
            return self.give_up_frto(now, counters);
        };
        let chunk = self.send_fresh(now, chunk);
        self.validate(self.in_flight() >= window);
        Some(chunk)
    }

    /// Exempts the final FIN from the congestion window, as Linux does (`tcp_cwnd_test`).
    fn final_chunk(&self, room: u32) -> Option<Chunk> {
        if !matches!(
            self.rules.engine,
            RecoveryEngine::Pipe { free_fin: true, .. }
        ) {
            return None;
        }
        self.fresh(room, u64::MAX).filter(|chunk| chunk.fin)
    }

    /// RFC 6675, section 4, NextSeg, if nothing is known to be lost and nothing new can be sent. Selects a segment
    /// below a SACKed one (rule 3), or the last segment once per recovery (rule 4).
    fn rescue(&mut self, left: u64) -> Option<usize> {
        if !self.rules.rescue || !self.agreed.sack || self.phase() != RecoveryPhase::Recovery {
            return None;
        }
        let reached = self.board.highest_sacked().unwrap_or(self.una);
        let below = |sent: &super::scoreboard::SentSegment| sent.end <= reached;
        let open = |sent: &super::scoreboard::SentSegment| !sent.sacked && !sent.out_again;
        let mut index = self
            .board
            .iter()
            .position(|sent| below(sent) && open(sent) && sent.start < self.episode.recover);
        let last = index.is_none() && self.una > self.episode.rescued;
        if last {
            index = self.board.iter().rposition(open);
        }
        let sent = self.board.get(index?)?;
        if u64::from(sent.charge) > left {
            return None;
        }
        if last {
            self.episode.rescued = self.episode.recover;
        }
        index
    }

    fn pipe_repair(
        &mut self,
        now: Instant,
        index: usize,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        self.repeats_now(now);
        let chunk = self.send_again(now, index, self.repair(), counters);
        if index == 0 && !self.timer_is(Purpose::Reorder) {
            self.set_timer(now, self.timeout(), Purpose::Retransmit);
        }
        self.ensure_timer(now);
        chunk
    }

    /// Falls back to normal recovery if F-RTO needs new data and there is none.
    fn give_up_frto(&mut self, now: Instant, counters: &mut EndpointCounters) -> Option<Chunk> {
        let waited = std::mem::take(&mut self.episode.only_new);
        if !waited || self.max > self.episode.recover {
            return None;
        }
        self.episode.frto = false;
        let left = self.congestion.window().saturating_sub(self.in_flight());
        self.repair_first(now, left, counters)
    }

    /// Retransmits the first lost segment if the remaining window allows it.
    fn repair_first(
        &mut self,
        now: Instant,
        left: u64,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let index = self.board.first_unrepaired()?;
        if u64::from(self.board.get(index)?.charge) > left {
            return None;
        }
        self.pipe_repair(now, index, counters)
    }

    /// Updates the record of the limit on sending. `limited` is true if the congestion window stops it
    /// (`tcp_cwnd_validate`).
    fn validate(&mut self, limited: bool) {
        let out = self.board.len();
        if self.una >= self.limited_until || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.limited_until = self.max;
        }
    }
}

//! Arrived segments, as an acknowledgement reports them: removed, SACKed, or repeated.

use posthaste_units::Instant;

use super::PipeRecovery;
use crate::profile::RoundTrips;
use crate::send::ack::{Ack, AckEffect};
use crate::send::flight::Flight;
use crate::send::scoreboard::SentSegment;
use crate::{EndpointCounters, Offset};

impl PipeRecovery {
    /// Processes the information of an acknowledgement about segments in flight.
    pub(super) fn take_news(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        ack: &Ack<'_>,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        let reached = flight.board.highest_sacked();
        let reached = reached.unwrap_or(flight.sequence.una);
        news.advanced = ack.number > flight.sequence.una;
        let blocks = self.take_dsack(ack, news, counters);
        self.take_sack(flight, now, ack, blocks, news);
        self.take_off(flight, now, ack, news);
        measure(flight, now, ack, news);
        if let Some(late) = news.late.filter(|late| *late < reached) {
            self.reordering.observe(late, reached, flight.rules.mss());
        }
    }

    /// Detects a D-SACK (RFC 2883, section 4; Linux `tcp_check_dsack`). Returns the other blocks.
    fn take_dsack<'a>(
        &mut self,
        ack: &Ack<'a>,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) -> &'a [(Offset, Offset)] {
        let Some((start, end)) = ack.blocks.first().copied() else {
            return ack.blocks;
        };
        let inside = ack
            .blocks
            .get(1)
            .is_some_and(|next| next.0 <= start && end <= next.1);
        if start >= ack.number && !inside {
            return ack.blocks;
        }
        news.dsack = true;
        counters.spurious += u64::from(self.undo.take_dsack(end));
        &ack.blocks[1..]
    }

    /// Marks SACKed segments (Linux `tcp_sacktag_write_queue`).
    fn take_sack(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        ack: &Ack<'_>,
        blocks: &[(Offset, Offset)],
        news: &mut AckEffect,
    ) {
        for (start, end) in blocks.iter().copied() {
            // Blocks of data already acknowledged, or never sent, are old or wrong (`tcp_is_sackblock_valid`).
            if start < ack.number || end > flight.sequence.max {
                continue;
            }
            for index in flight.board.at(start)..flight.board.len() {
                let Some(sent) = flight
                    .board
                    .get(index)
                    .filter(|sent| sent.end <= end)
                    .copied()
                else {
                    break;
                };
                if sent.start >= start && flight.board.mark_sacked(index) {
                    self.count_arrival(flight, now, &sent, news);
                    news.sacked += 1;
                    if sent.repeats == 0 {
                        news.sack_sent.get_or_insert(sent.sent);
                    }
                }
            }
        }
    }

    /// Handles a segment that is acknowledged, or SACKed for the first time.
    fn count_arrival(
        &mut self,
        flight: &Flight,
        now: Instant,
        sent: &SentSegment,
        news: &mut AckEffect,
    ) {
        news.delivered.bytes += u64::from(sent.charge);
        news.delivered.segments += 1;
        if sent.repeats == 0 {
            news.late = Some(news.late.map_or(sent.start, |late| late.min(sent.start)));
            news.original |= sent.end <= flight.episode.recover;
        }
        self.rack.advance(now, sent, flight.timer.rtt.minimum());
    }

    /// Removes acknowledged segments (`tcp_clean_rtx_queue`).
    fn take_off(&mut self, flight: &mut Flight, now: Instant, ack: &Ack<'_>, news: &mut AckEffect) {
        if !news.advanced {
            return;
        }
        let (mut segments, mut once) = (0, true);
        while let Some(sent) = flight.board.acknowledge(ack.number) {
            segments += 1;
            once &= sent.repeats == 0;
            // A SACKed segment has counted when its SACK arrived.
            if !sent.sacked {
                let first = news.sent.map_or(sent.sent, |sent| sent.0);
                news.sent = Some((first, sent.sent));
                self.count_arrival(flight, now, &sent, news);
            }
        }
        news.sent = news.sent.filter(|_| once);
        news.timer |= segments > 0;
        flight.sequence.una = ack.number;
        flight.sequence.next = flight.sequence.max.max(ack.number);
        if !flight.rules.sack() && segments > 0 {
            // One segment fills the hole. Duplicates have reported the rest (`tcp_remove_reno_sacks`).
            let reported = flight.episode.duplicates;
            flight.episode.duplicates = reported.saturating_sub(segments - 1);
            let fresh = segments.saturating_sub(reported).max(1);
            let bytes = u64::from(fresh) * flight.rules.mss();
            news.delivered.bytes = news.delivered.bytes.min(bytes);
            news.delivered.segments = news.delivered.segments.min(fresh);
        }
    }
}

/// Measures the round-trip time (Linux `tcp_ack_update_rtt`): from a segment sent once, else from the echoed timestamp,
/// and never from a segment that may have been sent twice. Stacks until 2014 preferred the timestamp.
fn measure(flight: &mut Flight, now: Instant, ack: &Ack<'_>, news: &mut AckEffect) {
    let echoed = ack.echo.filter(|_| news.advanced);
    let by_echo = echoed.map(|(_, rtt)| rtt.max(flight.rules.tick));
    let first = news.sent.map(|sent| sent.0).or(news.sack_sent);
    let by_segment = first.map(|sent| now.saturating_since(sent));
    let rtt = match flight.rules.round_trips {
        RoundTrips::ByEcho if !news.advanced => None,
        RoundTrips::ByEcho => by_echo.or(by_segment),
        RoundTrips::BySegment => by_segment.or(by_echo),
    };
    if let Some(rtt) = rtt {
        flight.timer.sample(rtt, ack.number, flight.sequence.max);
    }
    let head = flight
        .board
        .get(0)
        .map(|first| now.saturating_since(first.sent));
    // The timer restarts only for a SACKed segment that was sent before the last transmission of the first one.
    // Otherwise SACKs would extend the timeout in recovery (`tcp_clean_rtx_queue`, FLAG_SET_XMIT_TIMER).
    if let (Some(sent), Some(age)) = (news.sack_sent, head) {
        news.timer |= now.saturating_since(sent) > age;
    }
}

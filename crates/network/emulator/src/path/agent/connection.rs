//! One connection as seen from the receiver's end: the data received, the receiver's acknowledgements, and the timer
//! that runs while data is missing.

use posthaste_link::Direction;
use posthaste_tcp::receive::duplicates::Gaps;
use posthaste_units::Instant;

use super::acks::Acks;
use super::received::{ReceivedStream, TooManyPieces};
use super::segment::ObservedSegment;
use super::{AgentCounters, Settings, Trigger};

/// State of a connection after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The connection continues.
    Open,
    /// No hole can occur any more: all data up to the FIN has arrived.
    Over,
    /// More holes than the agent remembers.
    Overfull,
}

/// Duplicates to send: their number and the packet.
pub(super) struct Burst {
    pub(super) count: u32,
    pub(super) packet: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct FollowedConnection {
    /// Distinguishes it from earlier connections between the same ends.
    pub(super) number: u64,
    /// Time of its last packet.
    pub(super) last: Instant,
    /// Direction and sequence number of the SYN that opened it.
    opening: (Direction, u32),
    offer: OfferedWindow,
    /// `None` before the server's SYN.
    received: Option<ReceivedStream>,
    fin: bool,
    gaps: Gaps,
    acks: Acks,
    timer: Option<HoleTimer>,
    /// Edge of the hole whose timer has run out. Each hole gets one timer.
    spent: Option<u32>,
    injected: u32,
}

/// Window of the receiver's SYN, and the scaling of later ones (RFC 7323, section 2).
#[derive(Clone, Copy, Debug, Default)]
struct OfferedWindow {
    first: u16,
    scale: Option<u8>,
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct HoleTimer {
    due: Instant,
    /// Beginning of the hole for which the timer runs.
    edge: u32,
}

impl FollowedConnection {
    /// A connection opened by a SYN without ACK.
    pub(super) fn new(
        number: u64,
        now: Instant,
        direction: Direction,
        syn: &ObservedSegment<'_>,
    ) -> Self {
        Self {
            number,
            last: now,
            opening: (direction, syn.sequence),
            offer: OfferedWindow::default(),
            received: None,
            fin: false,
            gaps: Gaps::default(),
            acks: Acks::default(),
            timer: None,
            spent: None,
            injected: 0,
        }
    }

    /// True if `syn` is the SYN that opened the connection, or a retransmission of it.
    pub(super) fn began_with(&self, direction: Direction, syn: &ObservedSegment<'_>) -> bool {
        self.opening == (direction, syn.sequence)
    }

    /// Expiry of its timer.
    pub(super) fn due(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.due)
    }

    /// Notes a segment that the receiver sends.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        segment: &ObservedSegment<'_>,
        settings: &Settings,
        counters: &mut AgentCounters,
    ) -> Standing {
        if segment.syn {
            self.offer.first = segment.window;
            self.offer.scale = segment.scale;
            self.acks.sent(segment, None);
            return Standing::Open;
        }
        if segment.payload > 0 {
            // A request. The gap before its reply includes processing time.
            self.gaps.pause();
        }
        if let (Some(received), Some(number)) = (&mut self.received, segment.acknowledgment) {
            let scale = self
                .offer
                .scale
                .filter(|_| self.offer.answered)
                .unwrap_or(0);
            received.acknowledged(number, u64::from(segment.window) << scale);
        }
        self.acks.sent(segment, self.hole());
        self.settle(now, false, settings, counters);
        self.standing()
    }

    /// Notes a segment that reaches the receiver.
    pub(super) fn delivered(
        &mut self,
        now: Instant,
        segment: &ObservedSegment<'_>,
        settings: &Settings,
        counters: &mut AgentCounters,
    ) -> Standing {
        if segment.syn {
            self.offer.answered = segment.scale.is_some();
            let first = segment.sequence.wrapping_add(1);
            let window = u64::from(self.offer.first);
            self.received
                .get_or_insert_with(|| ReceivedStream::new(first, window));
            return Standing::Open;
        }
        let Some(received) = &mut self.received else {
            return Standing::Open;
        };
        if segment.length() == 0 {
            return Standing::Open;
        }
        if !received.takes(segment.sequence, segment.payload) {
            counters.beyond_window += 1;
            return Standing::Open;
        }
        let end = received.end();
        if received.add(segment.sequence, segment.length()) == Err(TooManyPieces) {
            return Standing::Overfull;
        }
        if received.end() == end {
            self.gaps.pause();
        } else if segment.payload > 0 {
            self.gaps.arrival(now);
        }
        self.fin |= segment.fin;
        counters.considered += u64::from(self.is_watched(settings));
        self.settle(now, true, settings, counters);
        self.standing()
    }

    /// Ends the timer. Returns the duplicates to send, if any.
    pub(super) fn expire(
        &mut self,
        settings: &Settings,
        counters: &mut AgentCounters,
        may_send: impl FnOnce(u32) -> bool,
    ) -> Option<Burst> {
        let edge = self.timer.take()?.edge;
        self.spent = Some(edge);
        let Some((count, packet)) = self.acks.missing(edge) else {
            counters.unconfirmed += 1;
            return None;
        };
        if count == 0 {
            counters.sufficient += 1;
            return None;
        }
        // Fewer duplicates than are missing would have no effect.
        if self.injected + count > settings.rule.per_connection || !may_send(count) {
            counters.limited += 1;
            return None;
        }
        self.injected += count;
        counters.served += 1;
        counters.injected += u64::from(count);
        let packet = packet.to_vec();
        Some(Burst { count, packet })
    }

    /// Beginning of the first hole.
    fn hole(&self) -> Option<u32> {
        let received = self.received.as_ref()?;
        received.has_hole().then(|| received.edge())
    }

    fn is_watched(&self, settings: &Settings) -> bool {
        self.fin || settings.rule.trigger == Trigger::Silence
    }

    /// Starts the timer at a hole, restarts it when more data has arrived, and stops it when the hole is filled.
    fn settle(
        &mut self,
        now: Instant,
        more: bool,
        settings: &Settings,
        counters: &mut AgentCounters,
    ) {
        let hole = self.hole();
        if self.timer.is_some_and(|timer| Some(timer.edge) != hole) {
            self.timer = None;
            counters.cancelled += 1;
        }
        let Some(edge) = hole else {
            self.spent = None;
            return;
        };
        if !self.is_watched(settings) || self.spent == Some(edge) {
            return;
        }
        if self.timer.is_none() {
            counters.started += 1;
        } else if !more {
            return;
        }
        let due = now + self.gaps.patience(&settings.rule);
        self.timer = Some(HoleTimer { due, edge });
    }

    fn standing(&self) -> Standing {
        if self.fin && self.hole().is_none() {
            Standing::Over
        } else {
            Standing::Open
        }
    }
}

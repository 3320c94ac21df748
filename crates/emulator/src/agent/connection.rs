//! One connection as the agent sees it from the receiver's end: what has come, what the receiver
//! has said, and the timer that runs while something is missing.

use posthaste_link::Direction;
use posthaste_tcp::receive::duplicates::Gaps;
use posthaste_units::Instant;

use super::acks::Acks;
use super::received::{Received, TooManyPieces};
use super::segment::Segment;
use super::{Counters, Settings, Trigger};

/// What is to become of a connection after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It goes on.
    Open,
    /// There can be no hole any more: everything has come, or it was reset.
    Over,
    /// It has more holes than are remembered.
    Overfull,
}

/// Duplicates to be sent: how many, of what.
pub(super) struct Burst {
    pub(super) count: u32,
    pub(super) packet: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Tells it from earlier ones between the same ends.
    pub(super) number: u64,
    /// When it last had a packet.
    pub(super) last: Instant,
    /// The SYN it began with: its way and its number.
    opening: (Direction, u32),
    offer: Offer,
    /// From the server's SYN on.
    received: Option<Received>,
    fin: bool,
    gaps: Gaps,
    acks: Acks,
    timer: Option<Timer>,
    /// The edge of the hole whose timer has run out: each hole has one chance.
    spent: Option<u32>,
    injected: u32,
}

/// The window of the receiver's SYN, and how later ones are to be read (RFC 7323, section 2).
#[derive(Clone, Copy, Debug, Default)]
struct Offer {
    first: u16,
    scale: Option<u8>,
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    due: Instant,
    /// Where the hole begins that it runs for.
    edge: u32,
}

impl Connection {
    /// The connection that a SYN without ACK begins.
    pub(super) fn new(number: u64, now: Instant, direction: Direction, syn: &Segment<'_>) -> Self {
        Self {
            number,
            last: now,
            opening: (direction, syn.sequence),
            offer: Offer::default(),
            received: None,
            fin: false,
            gaps: Gaps::default(),
            acks: Acks::default(),
            timer: None,
            spent: None,
            injected: 0,
        }
    }

    /// Whether a SYN is the one it began with, sent again or not.
    pub(super) fn began_with(&self, direction: Direction, syn: &Segment<'_>) -> bool {
        self.opening == (direction, syn.sequence)
    }

    /// When its timer runs out.
    pub(super) fn due(&self) -> Option<Instant> {
        self.timer.map(|timer| timer.due)
    }

    /// The receiver sends a segment.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        settings: &Settings,
        counters: &mut Counters,
    ) -> Standing {
        if segment.syn {
            self.offer.first = segment.window;
            self.offer.scale = segment.scale;
            self.acks.sent(segment, None);
            return Standing::Open;
        }
        if segment.payload > 0 {
            // A request: the reply to it comes when it is ready.
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

    /// A segment reaches the receiver.
    pub(super) fn delivered(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        settings: &Settings,
        counters: &mut Counters,
    ) -> Standing {
        if segment.syn {
            self.offer.answered = segment.scale.is_some();
            let first = segment.sequence.wrapping_add(1);
            let window = u64::from(self.offer.first);
            self.received
                .get_or_insert_with(|| Received::new(first, window));
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

    /// Its time has come: what to send, if anything.
    pub(super) fn expire(
        &mut self,
        settings: &Settings,
        counters: &mut Counters,
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
        // Fewer than are missing would be of no use.
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

    /// Where the first hole begins.
    fn hole(&self) -> Option<u32> {
        let received = self.received.as_ref()?;
        received.has_hole().then(|| received.edge())
    }

    fn is_watched(&self, settings: &Settings) -> bool {
        self.fin || settings.rule.trigger == Trigger::Silence
    }

    /// Starts the timer at a hole, from anew when more has come, and stops it when the hole is filled.
    fn settle(&mut self, now: Instant, more: bool, settings: &Settings, counters: &mut Counters) {
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
        self.timer = Some(Timer { due, edge });
    }

    fn standing(&self) -> Standing {
        if self.fin && self.hole().is_none() {
            Standing::Over
        } else {
            Standing::Open
        }
    }
}

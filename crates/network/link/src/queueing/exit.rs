//! Departures of a link: packets with a known departure time, in order, and packets held back behind later ones.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::packets::bit_errors::BitErrors;
use crate::{DeliveryMarks, Departure, DropReason, Fate, Packet, queueing::invariants};

/// Maximum time for which a packet is held back if too few later ones come.
pub const HOLD_LIMIT: Span = Span::from_secs(10);

/// A packet in a link, with the effects to apply.
pub(crate) struct PacketEntry<P> {
    pub(crate) position: u64,
    pub(crate) copy: u32,
    pub(crate) arrived: Instant,
    /// Draw of the jitter.
    pub(crate) deviation: f64,
    pub(crate) extra_delay: Span,
    pub(crate) at_once: bool,
    pub(crate) hold: u32,
    /// Marked by the queue.
    pub(crate) congested: bool,
    pub(crate) flips: Vec<u32>,
    /// Longer than the MTU behind the link.
    pub(crate) too_big: bool,
    pub(crate) packet: P,
}

/// Departing packets.
pub(crate) struct Exit<P> {
    /// Sorted by departure; equal times in the order of decision.
    due: VecDeque<Departure<P>>,
    /// First departure.
    first: Instant,
    held: Vec<HeldPacket<P>>,
    /// Latest departure of a delivered packet so far.
    latest: Instant,
    errors: Option<BitErrors>,
}

struct HeldPacket<P> {
    departure: Departure<P>,
    places: u32,
    deadline: Instant,
}

impl<P: Packet> Exit<P> {
    pub(crate) fn new(errors: Option<BitErrors>) -> Self {
        Self {
            due: VecDeque::new(),
            first: Instant::FAR_FUTURE,
            held: Vec::new(),
            latest: Instant::ORIGIN,
            errors,
        }
    }

    /// Discards all packets, as new with `errors`.
    pub(crate) fn restart(&mut self, errors: Option<BitErrors>) {
        self.due.clear();
        self.first = Instant::FAR_FUTURE;
        self.held.clear();
        self.latest = Instant::ORIGIN;
        self.errors = errors;
    }

    /// Drops the packet at `left`.
    pub(crate) fn drop(&mut self, entry: PacketEntry<P>, left: Instant, reason: DropReason) {
        self.insert(entry.departure(left, Fate::Dropped(reason)));
    }

    /// True if packets are delivered unchanged and none is held back.
    pub(crate) fn is_straight(&self) -> bool {
        self.held.is_empty() && self.errors.is_none()
    }

    /// Delivers a packet without effects at `left`.
    #[inline]
    pub(crate) fn pass(&mut self, arrived: Instant, left: Instant, position: u64, packet: P) {
        let overtook = left < self.latest;
        self.latest = self.latest.max(left);
        self.insert(Departure {
            position,
            copy: 0,
            arrived,
            left,
            fate: Fate::Delivered(DeliveryMarks {
                overtook,
                ..DeliveryMarks::default()
            }),
            packet,
        });
    }

    /// Drops a packet because the queue is full.
    #[cold]
    pub(crate) fn refuse(&mut self, arrived: Instant, position: u64, packet: P) {
        self.insert(Departure {
            position,
            copy: 0,
            arrived,
            left: arrived,
            fate: Fate::Dropped(DropReason::QueueFull),
            packet,
        });
    }

    /// Delivers the packet at `left`, or later if it is held back.
    #[inline]
    pub(crate) fn deliver(&mut self, mut entry: PacketEntry<P>, left: Instant) {
        let bits = entry.packet.bytes().saturating_mul(8);
        let mut marks = DeliveryMarks {
            overtook: left < self.latest,
            held: entry.hold > 0,
            congested: entry.congested,
            flipped: 0,
        };
        // Behind the link nobody sees the bits of a packet that is too long, and they may not change its length.
        if !entry.too_big {
            for bit in entry.flips.iter().copied().filter(|bit| *bit < bits) {
                entry.packet.flip(bit);
                marks.flipped += 1;
            }
            if let Some(errors) = &mut self.errors {
                marks.flipped += errors.pass(&mut entry.packet);
            }
        }
        let (position, places) = (entry.position, entry.hold);
        let departure = entry.departure(left, Fate::Delivered(marks));
        if places > 0 {
            self.held.push(HeldPacket {
                departure,
                places,
                deadline: left + HOLD_LIMIT,
            });
        } else {
            self.latest = self.latest.max(left);
            self.insert(departure);
            if !self.held.is_empty() {
                self.went_first(position, left);
            }
        }
    }

    /// Counts a departure for the packets held back behind it. A packet released by it leaves after it, and counts as a
    /// departure for others.
    fn went_first(&mut self, position: u64, left: Instant) {
        let mut gone = vec![position];
        while let Some(position) = gone.pop() {
            let mut at = 0;
            while let Some(held) = self.held.get_mut(at) {
                if held.departure.position < position {
                    held.places -= 1;
                }
                if held.places > 0 {
                    at += 1;
                    continue;
                }
                let mut held = self.held.remove(at);
                held.departure.left = left.min(held.deadline).max(held.departure.left);
                gone.push(held.departure.position);
                self.insert(held.departure);
            }
        }
    }

    /// Releases packets held for too long by `now`. Returns the time of the last release.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Instant> {
        let mut last = None;
        while let Some(at) = self.held.iter().position(|held| held.deadline <= now) {
            let mut held = self.held.remove(at);
            held.departure.left = held.deadline;
            last = last.max(Some(held.deadline));
            self.insert(held.departure);
        }
        self.assert_invariants();
        last
    }

    #[inline]
    fn insert(&mut self, departure: Departure<P>) {
        debug_assert!(
            departure.left >= departure.arrived,
            "a packet leaves before it arrives"
        );
        self.first = self.first.min(departure.left);
        match self.due.back() {
            Some(last) if last.left > departure.left => self.overtake(departure),
            _ => self.due.push_back(departure),
        }
    }

    /// Inserts a packet that leaves before others that were decided earlier.
    #[cold]
    fn overtake(&mut self, departure: Departure<P>) {
        let index = self
            .due
            .partition_point(|other| other.left <= departure.left);
        self.due.insert(index, departure);
        self.assert_invariants();
    }

    /// The first packet that has left by `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Departure<P>> {
        if self.first > now {
            return None;
        }
        let departure = self.due.pop_front();
        let next = self.due.front();
        self.first = next.map_or(Instant::FAR_FUTURE, |departure| departure.left);
        debug_assert!(
            departure
                .as_ref()
                .is_none_or(|departure| departure.left <= self.first),
            "departures are out of order"
        );
        departure
    }

    /// True if nothing leaves after `now`.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.held.is_empty() && self.due.back().is_none_or(|last| last.left <= now)
    }

    /// Number of packets that have not been popped.
    pub(crate) fn packets(&self) -> usize {
        self.due.len() + self.held.len()
    }

    /// Panics if departures are out of order. Checked in debug builds.
    fn assert_invariants(&self) {
        if invariants::are_checked(self.due.len()) {
            let times = self.due.iter().map(|departure| departure.left);
            assert!(times.clone().is_sorted(), "departures are out of order");
            let first = times.min().unwrap_or(Instant::FAR_FUTURE);
            assert_eq!(self.first, first, "the first departure is wrong");
            let waits = |held: &HeldPacket<P>| held.places > 0;
            assert!(
                self.held.iter().all(waits),
                "a packet is held behind nothing"
            );
        }
    }

    /// True if packets are held back.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// First departure among packets with a known time.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.due.is_empty()).then_some(self.first)
    }

    /// First departure, or end of a hold.
    pub(crate) fn wake(&self) -> Option<Instant> {
        let due = self.next();
        let held = self.held.iter().map(|held| held.deadline);
        due.into_iter().chain(held).min()
    }
}

impl<P> PacketEntry<P> {
    fn departure(self, left: Instant, fate: Fate) -> Departure<P> {
        Departure {
            position: self.position,
            copy: self.copy,
            arrived: self.arrived,
            left,
            fate,
            packet: self.packet,
        }
    }
}

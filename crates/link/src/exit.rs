//! The far end of a link: packets whose time is known, in the order in which they leave, and those
//! held back until others have gone.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::bit_errors::BitErrors;
use crate::{Fate, Marks, Packet, Passage, Reason};

/// How long a packet is held back at most when too few later ones come.
pub const HOLD_LIMIT: Span = Span::from_secs(10);

/// A packet on its way through a link, and what is to happen to it.
pub(crate) struct Entry<P> {
    pub(crate) position: u64,
    pub(crate) copy: u32,
    pub(crate) arrived: Instant,
    /// The jitter's draw.
    pub(crate) deviation: f64,
    pub(crate) extra_delay: Span,
    pub(crate) at_once: bool,
    pub(crate) hold: u32,
    pub(crate) flips: Vec<u32>,
    pub(crate) packet: P,
}

/// Packets that are about to leave.
pub(crate) struct Exit<P> {
    /// Sorted by when they leave; equal times in the order in which they were decided.
    due: VecDeque<Passage<P>>,
    /// When the first of these leaves.
    first: Instant,
    held: Vec<Held<P>>,
    /// When the latest delivered so far leaves.
    latest: Instant,
    errors: Option<BitErrors>,
}

struct Held<P> {
    passage: Passage<P>,
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

    /// Nothing is on its way any more.
    pub(crate) fn restart(&mut self, errors: Option<BitErrors>) {
        self.due.clear();
        self.first = Instant::FAR_FUTURE;
        self.held.clear();
        self.latest = Instant::ORIGIN;
        self.errors = errors;
    }

    /// The packet is dropped at `left`.
    pub(crate) fn drop(&mut self, entry: Entry<P>, left: Instant, reason: Reason) {
        self.insert(entry.passage(left, Fate::Dropped(reason)));
    }

    /// Whether what is delivered leaves as it is, and nothing waits for it.
    pub(crate) fn is_straight(&self) -> bool {
        self.held.is_empty() && self.errors.is_none()
    }

    /// A packet to which nothing happens leaves at `left`.
    #[inline]
    pub(crate) fn pass(&mut self, arrived: Instant, left: Instant, position: u64, packet: P) {
        let overtook = left < self.latest;
        self.latest = self.latest.max(left);
        self.insert(Passage {
            position,
            copy: 0,
            arrived,
            left,
            fate: Fate::Delivered(Marks {
                overtook,
                ..Marks::default()
            }),
            packet,
        });
    }

    /// A packet for which there is no room.
    #[cold]
    pub(crate) fn refuse(&mut self, arrived: Instant, position: u64, packet: P) {
        self.insert(Passage {
            position,
            copy: 0,
            arrived,
            left: arrived,
            fate: Fate::Dropped(Reason::QueueFull),
            packet,
        });
    }

    /// The packet is delivered at `left`, or later where it is held back.
    #[inline]
    pub(crate) fn deliver(&mut self, mut entry: Entry<P>, left: Instant) {
        let bits = entry.packet.bytes().saturating_mul(8);
        let mut marks = Marks {
            overtook: left < self.latest,
            held: entry.hold > 0,
            flipped: 0,
        };
        for bit in entry.flips.iter().copied().filter(|bit| *bit < bits) {
            entry.packet.flip(bit);
            marks.flipped += 1;
        }
        if let Some(errors) = &mut self.errors {
            marks.flipped += errors.pass(&mut entry.packet);
        }
        let (position, places) = (entry.position, entry.hold);
        let passage = entry.passage(left, Fate::Delivered(marks));
        if places > 0 {
            self.held.push(Held {
                passage,
                places,
                deadline: left + HOLD_LIMIT,
            });
        } else {
            self.latest = self.latest.max(left);
            self.insert(passage);
            if !self.held.is_empty() {
                self.went_first(position, left);
            }
        }
    }

    /// A packet leaves at `left`: one fewer to wait for where an earlier one is held back. Who is
    /// let go by that leaves behind it, and has gone first for others.
    fn went_first(&mut self, position: u64, left: Instant) {
        let mut gone = vec![position];
        while let Some(position) = gone.pop() {
            let mut at = 0;
            while let Some(held) = self.held.get_mut(at) {
                if held.passage.position < position {
                    held.places -= 1;
                }
                if held.places > 0 {
                    at += 1;
                    continue;
                }
                let mut held = self.held.remove(at);
                held.passage.left = left.min(held.deadline).max(held.passage.left);
                gone.push(held.passage.position);
                self.insert(held.passage);
            }
        }
    }

    /// Lets go who has been held for too long by `now`; returns the last time that happened.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Instant> {
        let mut last = None;
        while let Some(at) = self.held.iter().position(|held| held.deadline <= now) {
            let mut held = self.held.remove(at);
            held.passage.left = held.deadline;
            last = last.max(Some(held.deadline));
            self.insert(held.passage);
        }
        last
    }

    #[inline]
    fn insert(&mut self, passage: Passage<P>) {
        self.first = self.first.min(passage.left);
        match self.due.back() {
            Some(last) if last.left > passage.left => self.overtake(passage),
            _ => self.due.push_back(passage),
        }
    }

    /// It leaves before others that were decided earlier.
    #[cold]
    fn overtake(&mut self, passage: Passage<P>) {
        let place = self.due.partition_point(|other| other.left <= passage.left);
        self.due.insert(place, passage);
    }

    /// The first whose time has come.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Passage<P>> {
        if self.first > now {
            return None;
        }
        let passage = self.due.pop_front();
        let next = self.due.front();
        self.first = next.map_or(Instant::FAR_FUTURE, |passage| passage.left);
        passage
    }

    /// Whether nothing leaves after `now`.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.held.is_empty() && self.due.back().is_none_or(|last| last.left <= now)
    }

    /// Whether packets are held back until others have gone.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// When the next leaves of those whose time is known.
    pub(crate) fn next(&self) -> Option<Instant> {
        (!self.due.is_empty()).then_some(self.first)
    }

    /// When the next leaves.
    pub(crate) fn wake(&self) -> Option<Instant> {
        let due = self.next();
        let held = self.held.iter().map(|held| held.deadline);
        due.into_iter().chain(held).min()
    }
}

impl<P> Entry<P> {
    fn passage(self, left: Instant, fate: Fate) -> Passage<P> {
        Passage {
            position: self.position,
            copy: self.copy,
            arrived: self.arrived,
            left,
            fate,
            packet: self.packet,
        }
    }
}

//! Counters of a link, by reason. Packets are conserved: pushed and copied packets are delivered, dropped for a reason,
//! or still inside.

use std::ops::AddAssign;

use posthaste_units::Span;

use crate::{Departure, DropReason, Fate, Packet};

/// A number of packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTally {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets, without the link's overhead.
    pub bytes: u64,
}

/// Delays that packets had in addition to queue and transmission, while each waited for the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayTally {
    /// Packets.
    pub packets: u64,
    nanos: u128,
    /// The part in which packets waited for the ones before them.
    waited_nanos: u128,
}

/// Packets that entered and left a link, or several links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets pushed.
    pub pushed: PacketTally,
    /// Copies made of pushed packets.
    pub copied: PacketTally,
    /// Packets delivered, copies included.
    pub delivered: PacketTally,
    /// Delivered with flipped bits.
    pub corrupted: PacketTally,
    /// Delivered with a mark of the queue: congestion experienced.
    pub marked: PacketTally,
    /// Delivered before an earlier one, or held back behind later ones.
    pub reordered: PacketTally,
    /// Delays under jitter that keeps the order of packets.
    pub jittered: DelayTally,
    dropped: [PacketTally; DropReason::ALL.len()],
}

impl PacketTally {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl DelayTally {
    /// Counts a packet with its delay, and the part of it in which it waited for the one before it.
    pub(crate) fn add(&mut self, delay: Span, waited: Span) {
        debug_assert!(waited <= delay, "a packet waits longer than it is delayed");
        self.packets += 1;
        self.nanos += u128::from(delay.as_nanos());
        self.waited_nanos += u128::from(waited.as_nanos());
    }

    /// Mean of the delays. `None` without packets.
    pub fn mean(&self) -> Option<Span> {
        self.mean_of(self.nanos)
    }

    /// Mean of the waits for the packets before. `None` without packets.
    pub fn mean_wait(&self) -> Option<Span> {
        self.mean_of(self.waited_nanos)
    }

    fn mean_of(&self, nanos: u128) -> Option<Span> {
        let mean = nanos.checked_div(u128::from(self.packets))?;
        u64::try_from(mean).ok().map(Span::from_nanos)
    }
}

impl LinkCounters {
    /// Dropped for this reason, copies included.
    pub const fn dropped(&self, reason: DropReason) -> PacketTally {
        self.dropped[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn dropped_in_all(&self) -> PacketTally {
        let mut all = PacketTally::default();
        self.dropped.iter().for_each(|tally| all += *tally);
        all
    }

    /// Packets neither delivered nor dropped yet.
    pub fn inside(&self) -> u64 {
        let offered = self.pushed.packets + self.copied.packets;
        let left = self.delivered.packets + self.dropped_in_all().packets;
        debug_assert!(
            left <= offered,
            "{left} packets left a link, {offered} were offered"
        );
        offered - left
    }

    pub(crate) fn came_out<P: Packet>(&mut self, departure: &Departure<P>) {
        let bytes = departure.packet.bytes();
        match departure.fate {
            Fate::Dropped(reason) => self.dropped[reason as usize].add(bytes),
            Fate::Delivered(marks) => {
                self.delivered.add(bytes);
                debug_assert!(
                    u64::from(marks.flipped) <= 8 * u64::from(bytes),
                    "more bits flipped than a packet has"
                );
                if marks.flipped > 0 {
                    self.corrupted.add(bytes);
                }
                if marks.congested {
                    self.marked.add(bytes);
                }
                if marks.overtook || marks.held {
                    self.reordered.add(bytes);
                }
            }
        }
    }
}

impl AddAssign for PacketTally {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl AddAssign for DelayTally {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.nanos += other.nanos;
        self.waited_nanos += other.waited_nanos;
    }
}

impl AddAssign for LinkCounters {
    fn add_assign(&mut self, other: Self) {
        self.pushed += other.pushed;
        self.copied += other.copied;
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.marked += other.marked;
        self.reordered += other.reordered;
        self.jittered += other.jittered;
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }
}

//! Counters of a link, by reason. Packets are conserved: pushed and copied packets are delivered, dropped for a reason,
//! or still inside.

use std::ops::AddAssign;

use crate::{Departure, DropReason, Fate, Packet};

/// A number of packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTally {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets, without the link's overhead.
    pub bytes: u64,
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
    /// Delivered before an earlier one, or held back behind later ones.
    pub reordered: PacketTally,
    dropped: [PacketTally; DropReason::ALL.len()],
}

impl PacketTally {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
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

impl AddAssign for LinkCounters {
    fn add_assign(&mut self, other: Self) {
        self.pushed += other.pushed;
        self.copied += other.copied;
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.reordered += other.reordered;
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
    }
}

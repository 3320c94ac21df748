//! A queue in front of the bandwidth, including cross traffic.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::queue::{Policy, QueueView};
use crate::queueing::context::LinkContext;
use crate::queueing::exit::{Exit, PacketEntry};
use crate::queueing::slots::Slots;
use crate::{Discipline, DropReason, Packet, PacketTally, Plan, queueing::invariants};

/// A queue.
pub(crate) struct ClassQueue<P> {
    waiting: VecDeque<QueuedPacket<P>>,
    /// Number of waiting packets of the link itself.
    own: usize,
    bytes: u64,
    sent: Slots,
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) dropped: QueueDrops,
}

/// A waiting packet.
pub(crate) enum QueuedPacket<P> {
    /// A packet of the link.
    Own(PacketEntry<P>),
    /// A packet of cross traffic, with its length.
    Other { arrived: Instant, bytes: u32 },
}

/// Drops of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueDrops {
    pub(crate) all: PacketTally,
    /// Drops of cross traffic.
    pub(crate) cross_traffic: PacketTally,
}

/// A queue as seen by its discipline.
struct ClassQueueView<'a, P> {
    waiting: &'a mut VecDeque<QueuedPacket<P>>,
    own: &'a mut usize,
    bytes: &'a mut u64,
    dropped: &'a mut QueueDrops,
    exit: &'a mut Exit<P>,
}

impl<P: Packet> QueuedPacket<P> {
    pub(crate) const fn arrived(&self) -> Instant {
        match self {
            Self::Own(entry) => entry.arrived,
            Self::Other { arrived, .. } => *arrived,
        }
    }

    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::Own(entry) => entry.packet.bytes(),
            Self::Other { bytes, .. } => *bytes,
        }
    }

    /// Marks a packet that is ECN-capable. Cross traffic is not.
    fn mark_congestion(&mut self) -> bool {
        match self {
            Self::Own(entry) if entry.packet.ecn().is_capable() => {
                entry.packet.mark_congestion();
                entry.congested = true;
                true
            }
            Self::Own(_) | Self::Other { .. } => false,
        }
    }
}

impl QueueDrops {
    fn note<P: Packet>(&mut self, packet: &QueuedPacket<P>) {
        let bytes = packet.bytes();
        self.all.add(bytes);
        if let QueuedPacket::Other { .. } = packet {
            self.cross_traffic.add(bytes);
        }
    }
}

impl<P: Packet> ClassQueue<P> {
    pub(crate) fn new(discipline: Discipline) -> Self {
        Self {
            waiting: VecDeque::new(),
            own: 0,
            bytes: 0,
            sent: Slots::new(),
            policy: discipline.start(),
            dropped: QueueDrops::default(),
        }
    }

    /// Restores the initial state in the same memory, except for the discipline.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.own = 0;
        self.bytes = 0;
        self.sent.clear();
        self.dropped = QueueDrops::default();
    }

    pub(crate) fn first(&self) -> Option<&QueuedPacket<P>> {
        self.waiting.front()
    }

    /// True if a packet of the link waits.
    pub(crate) const fn has_own(&self) -> bool {
        self.own > 0
    }

    /// True if one more packet fits at `now`. Sent packets are released only if needed: if the queue is full, or its
    /// memory.
    #[inline]
    pub(crate) fn has_room(&mut self, now: Instant, plan: &Plan, more: u32) -> bool {
        if self.sent.is_packed() || !self.fits(plan, more) {
            self.sent.release(now);
        }
        self.fits(plan, more)
    }

    fn fits(&self, plan: &Plan, more: u32) -> bool {
        let packets = self.waiting.len() + self.sent.packets();
        plan.queue
            .has_room(packets, self.bytes + self.sent.bytes(), more)
    }

    /// Enqueues a packet at `now`, or drops it. A discipline that pushes out makes room for it first.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket<P>,
        context: &mut LinkContext<'_, P>,
    ) {
        let (plan, exit) = (context.plan, &mut *context.exit);
        let bytes = packet.bytes();
        if self.policy.pushes_out() && plan.queue.has_room(0, 0, bytes) {
            while !self.has_room(now, plan, bytes) && !self.waiting.is_empty() {
                self.split(exit).1.drop_first(now, DropReason::PushedOut);
            }
        }
        if !self.has_room(now, plan, bytes) {
            return self.refuse(now, packet, exit);
        }
        self.sent.release(now);
        if self
            .policy
            .marks_arrival(self.waiting.len() + self.sent.packets())
        {
            packet.mark_congestion();
        }
        self.bytes += u64::from(bytes);
        self.own += usize::from(matches!(packet, QueuedPacket::Own(_)));
        self.waiting.push_back(packet);
        self.assert_invariants();
    }

    /// Number of waiting packets of the link itself.
    pub(crate) const fn own(&self) -> usize {
        self.own
    }

    /// Panics if the sums over waiting packets are wrong or arrivals decrease. Checked in debug builds.
    fn assert_invariants(&self) {
        if invariants::are_checked(self.waiting.len()) {
            let packets = self.waiting.iter();
            let bytes = packets.clone().map(|packet| u64::from(packet.bytes()));
            assert_eq!(
                self.bytes,
                bytes.sum::<u64>(),
                "queued bytes differ from those of the packets"
            );
            let own = packets
                .clone()
                .filter(|packet| matches!(packet, QueuedPacket::Own(_)));
            assert_eq!(
                self.own,
                own.count(),
                "the number of the link's own packets is wrong"
            );
            let arrivals = packets.map(QueuedPacket::arrived);
            assert!(arrivals.is_sorted(), "arrivals at a queue decrease");
        }
    }

    /// Drops a packet because the queue is full.
    pub(crate) fn refuse(&mut self, now: Instant, packet: QueuedPacket<P>, exit: &mut Exit<P>) {
        self.dropped.note(&packet);
        if let QueuedPacket::Own(entry) = packet {
            exit.drop(entry, now, DropReason::QueueFull);
        }
    }

    /// Removes the packet to be sent at `now`, after the discipline has dropped others.
    pub(crate) fn pop(&mut self, now: Instant, exit: &mut Exit<P>) -> Option<QueuedPacket<P>> {
        let (policy, mut view) = self.split(exit);
        policy.before_sending(now, &mut view);
        let packet = view.take();
        debug_assert!(
            packet.as_ref().is_none_or(|packet| packet.arrived() <= now),
            "a packet is transmitted before it arrives"
        );
        self.assert_invariants();
        packet
    }

    /// Counts a packet in transmission as queued until then.
    #[inline]
    pub(crate) fn occupy(&mut self, until: Instant, bytes: u32) {
        self.sent.take(until, bytes);
    }

    /// The discipline, and its view of the queue.
    fn split<'a>(
        &'a mut self,
        exit: &'a mut Exit<P>,
    ) -> (&'a mut dyn Policy, ClassQueueView<'a, P>) {
        let view = ClassQueueView {
            waiting: &mut self.waiting,
            own: &mut self.own,
            bytes: &mut self.bytes,
            dropped: &mut self.dropped,
            exit,
        };
        (&mut *self.policy, view)
    }
}

impl<P: Packet> ClassQueueView<'_, P> {
    fn take(&mut self) -> Option<QueuedPacket<P>> {
        let first = self.waiting.pop_front()?;
        *self.bytes -= u64::from(first.bytes());
        *self.own -= usize::from(matches!(first, QueuedPacket::Own(_)));
        Some(first)
    }
}

impl<P: Packet> QueueView for ClassQueueView<'_, P> {
    fn first(&self, now: Instant) -> Option<(Span, u64)> {
        let first = self.waiting.front()?;
        let behind = *self.bytes - u64::from(first.bytes());
        Some((now.since(first.arrived()), behind))
    }

    fn drop_first(&mut self, now: Instant, reason: DropReason) {
        let Some(first) = self.take() else {
            return;
        };
        self.dropped.note(&first);
        if let QueuedPacket::Own(entry) = first {
            self.exit.drop(entry, now, reason);
        }
    }
    fn mark_first(&mut self) -> bool {
        let first = self.waiting.front_mut();
        first.is_some_and(QueuedPacket::mark_congestion)
    }
}

//! A queue in front of the bandwidth, including cross traffic.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::exit::{Entry, Exit};
use crate::queue::{Line, Policy};
use crate::slots::Slots;
use crate::{Discipline, Packet, Plan, Reason, Tally};

/// A queue.
pub(crate) struct Lane<P> {
    waiting: VecDeque<Waiting<P>>,
    /// Number of waiting packets of the link itself.
    own: usize,
    bytes: u64,
    sent: Slots,
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) dropped: Dropped,
}

/// A waiting packet.
pub(crate) enum Waiting<P> {
    /// A packet of the link.
    Own(Entry<P>),
    /// A packet of cross traffic, with its length.
    Other { arrived: Instant, bytes: u32 },
}

/// Drops of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) all: Tally,
    /// Drops of cross traffic.
    pub(crate) others: Tally,
}

/// A queue as seen by its discipline.
struct View<'a, P> {
    waiting: &'a mut VecDeque<Waiting<P>>,
    own: &'a mut usize,
    bytes: &'a mut u64,
    dropped: &'a mut Dropped,
    exit: &'a mut Exit<P>,
}

impl<P: Packet> Waiting<P> {
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
}

impl Dropped {
    fn note<P: Packet>(&mut self, packet: &Waiting<P>) {
        let bytes = packet.bytes();
        self.all.add(bytes);
        if let Waiting::Other { .. } = packet {
            self.others.add(bytes);
        }
    }
}

impl<P: Packet> Lane<P> {
    pub(crate) fn new(discipline: Discipline) -> Self {
        Self {
            waiting: VecDeque::new(),
            own: 0,
            bytes: 0,
            sent: Slots::new(),
            policy: discipline.start(),
            dropped: Dropped::default(),
        }
    }

    /// Restores the initial state in the same memory, except for the discipline.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.own = 0;
        self.bytes = 0;
        self.sent.clear();
        self.dropped = Dropped::default();
    }

    pub(crate) fn first(&self) -> Option<&Waiting<P>> {
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
        packet: Waiting<P>,
        plan: &Plan,
        exit: &mut Exit<P>,
    ) {
        let bytes = packet.bytes();
        if self.policy.pushes_out() && plan.queue.has_room(0, 0, bytes) {
            while !self.has_room(now, plan, bytes) && !self.waiting.is_empty() {
                self.split(exit).1.drop_first(now, Reason::PushedOut);
            }
        }
        if !self.has_room(now, plan, bytes) {
            return self.refuse(now, packet, exit);
        }
        self.bytes += u64::from(bytes);
        self.own += usize::from(matches!(packet, Waiting::Own(_)));
        self.waiting.push_back(packet);
    }

    /// Drops a packet because the queue is full.
    pub(crate) fn refuse(&mut self, now: Instant, packet: Waiting<P>, exit: &mut Exit<P>) {
        self.dropped.note(&packet);
        if let Waiting::Own(entry) = packet {
            exit.drop(entry, now, Reason::QueueFull);
        }
    }

    /// Removes the packet to be sent at `now`, after the discipline has dropped others.
    pub(crate) fn pop(&mut self, now: Instant, exit: &mut Exit<P>) -> Option<Waiting<P>> {
        let (policy, mut view) = self.split(exit);
        policy.before_sending(now, &mut view);
        view.take()
    }

    /// Counts a packet in transmission as queued until then.
    #[inline]
    pub(crate) fn occupy(&mut self, until: Instant, bytes: u32) {
        self.sent.take(until, bytes);
    }

    /// The discipline, and its view of the queue.
    fn split<'a>(&'a mut self, exit: &'a mut Exit<P>) -> (&'a mut dyn Policy, View<'a, P>) {
        let view = View {
            waiting: &mut self.waiting,
            own: &mut self.own,
            bytes: &mut self.bytes,
            dropped: &mut self.dropped,
            exit,
        };
        (&mut *self.policy, view)
    }
}

impl<P: Packet> View<'_, P> {
    fn take(&mut self) -> Option<Waiting<P>> {
        let first = self.waiting.pop_front()?;
        *self.bytes -= u64::from(first.bytes());
        *self.own -= usize::from(matches!(first, Waiting::Own(_)));
        Some(first)
    }
}

impl<P: Packet> Line for View<'_, P> {
    fn first(&self, now: Instant) -> Option<(Span, u64)> {
        let first = self.waiting.front()?;
        let behind = *self.bytes - u64::from(first.bytes());
        Some((now.since(first.arrived()), behind))
    }

    fn drop_first(&mut self, now: Instant, reason: Reason) {
        let Some(first) = self.take() else {
            return;
        };
        self.dropped.note(&first);
        if let Waiting::Own(entry) = first {
            self.exit.drop(entry, now, reason);
        }
    }
}

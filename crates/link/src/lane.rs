//! One queue before the bandwidth, with what others have in it.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::exit::{Entry, Exit};
use crate::queue::{Line, Policy};
use crate::slots::Slots;
use crate::{Discipline, Packet, Plan, Reason, Tally};

/// A queue.
pub(crate) struct Lane<P> {
    waiting: VecDeque<Waiting<P>>,
    /// How many of them are the link's own.
    own: usize,
    bytes: u64,
    sent: Slots,
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) dropped: Dropped,
}

/// What waits.
pub(crate) enum Waiting<P> {
    /// A packet of the link's.
    Own(Entry<P>),
    /// A packet of the background, of so many bytes.
    Other { arrived: Instant, bytes: u32 },
}

/// What a queue has dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dropped {
    pub(crate) all: Tally,
    /// Those of the background.
    pub(crate) others: Tally,
}

/// A queue as its discipline sees it.
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

    /// As new, in the same memory; but for the discipline.
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

    /// Whether a packet of the link's waits.
    pub(crate) const fn has_own(&self) -> bool {
        self.own > 0
    }

    /// Whether one more fits at `now`. What is over is given back only where that matters: where there
    /// is no room, or no memory for one more.
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

    /// Takes a packet in at `now`, when a discipline that pushes out has made room for it, or drops it.
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

    /// Drops a packet for which there is no room.
    pub(crate) fn refuse(&mut self, now: Instant, packet: Waiting<P>, exit: &mut Exit<P>) {
        self.dropped.note(&packet);
        if let Waiting::Own(entry) = packet {
            exit.drop(entry, now, Reason::QueueFull);
        }
    }

    /// The packet to be sent at `now`, when the discipline has dropped those that are not to be.
    pub(crate) fn pop(&mut self, now: Instant, exit: &mut Exit<P>) -> Option<Waiting<P>> {
        let (policy, mut view) = self.split(exit);
        policy.before_sending(now, &mut view);
        view.take()
    }

    /// A packet is on the line until then, and takes room.
    #[inline]
    pub(crate) fn occupy(&mut self, until: Instant, bytes: u32) {
        self.sent.take(until, bytes);
    }

    /// The discipline, and what it sees.
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

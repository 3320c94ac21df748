//! The order of things in dummynet: a queue, or one for each class, then the bandwidth, then the
//! line with its delay.
//!
//! A queue whose discipline decides by arrivals alone sends everything as soon as it is pushed, in
//! time yet to come: what it does cannot depend on when it is asked. The others decide when a
//! packet's turn has come.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use crate::classes::Shares;
use crate::conditions::Conditions;
use crate::exit::{Entry, Exit};
use crate::meter::Meter;
use crate::queue::{Line, Policy};
use crate::slots::Slots;
use crate::{ClassCounters, Packet, Plan, Reason};

/// Queues, bandwidth and line of one link.
pub(crate) struct Pipe<P> {
    lanes: Vec<Lane<P>>,
    shares: Option<Shares>,
    meter: Meter,
    conditions: Conditions,
    ahead: bool,
    /// When the last packet that kept its place leaves.
    tail: Instant,
}

/// A queue.
struct Lane<P> {
    waiting: VecDeque<Entry<P>>,
    bytes: u64,
    sent: Slots,
    policy: Box<dyn Policy + Send>,
}

/// A queue as its discipline sees it.
struct View<'a, P> {
    waiting: &'a mut VecDeque<Entry<P>>,
    bytes: &'a mut u64,
    exit: &'a mut Exit<P>,
}

impl<P: Packet> Pipe<P> {
    pub(crate) fn new(plan: &Plan) -> Self {
        let lane = || Lane {
            waiting: VecDeque::new(),
            bytes: 0,
            sent: Slots::new(),
            policy: plan.queue.discipline.start(),
        };
        let classes = plan
            .classes
            .as_deref()
            .filter(|classes| !classes.list.is_empty());
        let lanes: Vec<Lane<P>> = match classes {
            Some(classes) => classes.list.iter().map(|_| lane()).collect(),
            None => vec![lane()],
        };
        Self {
            ahead: classes.is_none() && lanes[0].policy.decides_on_arrival(),
            lanes,
            shares: classes.map(Shares::new),
            meter: Meter::default(),
            conditions: Conditions::new(plan),
            tail: Instant::ORIGIN,
        }
    }

    /// As new, in the same memory.
    pub(crate) fn restart(&mut self, plan: &Plan) {
        for lane in &mut self.lanes {
            lane.waiting.clear();
            lane.bytes = 0;
            lane.sent.clear();
            if !self.ahead {
                lane.policy = plan.queue.discipline.start();
            }
        }
        if let (Some(shares), Some(classes)) = (&mut self.shares, plan.classes.as_deref()) {
            *shares = Shares::new(classes);
        }
        self.meter = Meter::default();
        self.conditions.restart();
        self.tail = Instant::ORIGIN;
    }

    /// Takes a packet, or drops it where there is no room.
    #[inline]
    pub(crate) fn push(
        &mut self,
        entry: Entry<P>,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) {
        let class = match (&self.shares, &plan.classes) {
            (Some(_), Some(classes)) => classes.of(entry.packet.dscp()).min(self.lanes.len() - 1),
            _ => 0,
        };
        let (now, bytes) = (entry.arrived, entry.packet.bytes());
        let lane = &mut self.lanes[class];
        if !self.ahead && lane.policy.pushes_out() && plan.queue.has_room(0, 0, bytes) {
            while !lane.has_room(now, plan, bytes) && !lane.waiting.is_empty() {
                lane.view(exit).drop_first(now, Reason::PushedOut);
            }
        }
        if !lane.has_room(now, plan, bytes) {
            return exit.drop(entry, now, Reason::QueueFull);
        }
        if self.ahead {
            let at = now.max(self.meter.free());
            return self.transmit(0, entry, at, plan, began, exit);
        }
        lane.bytes += u64::from(bytes);
        lane.waiting.push_back(entry);
    }

    /// When a packet to which nothing happens leaves; none where there is no room.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        now: Instant,
        position: u64,
        bytes: u32,
        deviation: f64,
        plan: &Plan,
        began: Instant,
    ) -> Option<Instant> {
        if !self.lanes[0].has_room(now, plan, bytes) {
            return None;
        }
        let through = self.occupy(0, now, position, bytes, plan, began);
        let delay = self
            .conditions
            .delay(plan, began, position, through, deviation);
        self.tail = self.in_order(plan, through + delay);
        Some(self.tail)
    }

    /// Sends what can be sent up to `now`, unless that was done beforehand; returns when the last
    /// was sent.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) -> Option<Instant> {
        if self.ahead {
            return None;
        }
        self.run(now, plan, began, exit)
    }

    fn run(
        &mut self,
        until: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) -> Option<Instant> {
        let mut last = None;
        while let Some(now) = self.next().filter(|next| *next <= until) {
            let ready =
                (0..self.lanes.len()).filter(|lane| self.ready(*lane).is_some_and(|at| at <= now));
            let class = match &self.shares {
                Some(shares) => shares.choose(now, ready).unwrap_or_default(),
                None => 0,
            };
            self.send(class, now, plan, began, exit);
            last = Some(now);
        }
        last
    }

    /// When the queue's first packet can be sent.
    fn ready(&self, class: usize) -> Option<Instant> {
        let first = self.lanes[class].waiting.front()?.arrived;
        let opens = self.shares.as_ref().map(|shares| shares.opens(class));
        Some(first.max(self.meter.free()).max(opens.unwrap_or_default()))
    }

    /// Whether every packet is sent as soon as it is pushed, in time yet to come.
    pub(crate) fn sends_ahead(&self) -> bool {
        self.ahead
    }

    /// When the next packet is sent; none where all have been, beforehand.
    pub(crate) fn next(&self) -> Option<Instant> {
        if self.ahead {
            return None;
        }
        (0..self.lanes.len())
            .filter_map(|class| self.ready(class))
            .min()
    }

    fn send(
        &mut self,
        class: usize,
        now: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) {
        let lane = &mut self.lanes[class];
        let policy = &mut lane.policy;
        policy.before_sending(
            now,
            &mut View {
                waiting: &mut lane.waiting,
                bytes: &mut lane.bytes,
                exit,
            },
        );
        let Some(entry) = lane.waiting.pop_front() else {
            return;
        };
        lane.bytes -= u64::from(entry.packet.bytes());
        self.transmit(class, entry, now, plan, began, exit);
    }

    /// Puts a packet on the line at `now`, when those before it are through.
    #[inline]
    fn transmit(
        &mut self,
        class: usize,
        entry: Entry<P>,
        now: Instant,
        plan: &Plan,
        began: Instant,
        exit: &mut Exit<P>,
    ) {
        let (position, bytes) = (entry.position, entry.packet.bytes());
        if let Some(shares) = &mut self.shares {
            shares.charge(class, now, plan.length(bytes), bytes);
        }
        let through = self.occupy(class, now, position, bytes, plan, began);
        if entry.at_once {
            return exit.deliver(entry, through);
        }
        let conditions = &mut self.conditions;
        let delay = conditions.delay(plan, began, position, through, entry.deviation);
        let left = self.in_order(plan, through + delay + entry.extra_delay);
        if entry.hold == 0 {
            self.tail = left;
        }
        exit.deliver(entry, left);
    }

    /// The bandwidth from `now` on, or from when it is free; returns when the packet is through.
    #[inline(always)]
    fn occupy(
        &mut self,
        class: usize,
        now: Instant,
        position: u64,
        bytes: u32,
        plan: &Plan,
        began: Instant,
    ) -> Instant {
        let (conditions, length) = (&mut self.conditions, plan.length(bytes));
        let through = match conditions.are_steady() {
            true => self.meter.send(now, length, |_| (plan.bandwidth, None)),
            false => self.meter.send(now, length, |now| {
                conditions.rate(plan, began, position, now)
            }),
        };
        self.lanes[class].sent.take(through, bytes);
        through
    }

    /// Not before the packet ahead of it, where that is to be kept.
    fn in_order(&self, plan: &Plan, left: Instant) -> Instant {
        match plan.keeps_order {
            true => left.max(self.tail),
            false => left,
        }
    }

    pub(crate) fn class_counters(&self) -> Vec<ClassCounters> {
        self.shares
            .as_ref()
            .map_or_else(Vec::new, |shares| shares.counters().collect())
    }
}

impl<P: Packet> Lane<P> {
    /// Whether one more fits at `now`. What is over is given back only where that matters: where there
    /// is no room, or no memory for one more.
    #[inline]
    fn has_room(&mut self, now: Instant, plan: &Plan, more: u32) -> bool {
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

    fn view<'a>(&'a mut self, exit: &'a mut Exit<P>) -> View<'a, P> {
        View {
            waiting: &mut self.waiting,
            bytes: &mut self.bytes,
            exit,
        }
    }
}

impl<P: Packet> Line for View<'_, P> {
    fn first(&self, now: Instant) -> Option<(Span, u64)> {
        let first = self.waiting.front()?;
        let behind = *self.bytes - u64::from(first.packet.bytes());
        Some((now.since(first.arrived), behind))
    }

    fn drop_first(&mut self, now: Instant, reason: Reason) {
        if let Some(first) = self.waiting.pop_front() {
            *self.bytes -= u64::from(first.packet.bytes());
            self.exit.drop(first, now, reason);
        }
    }
}

//! The model of dummynet: a queue, or one for each class, then the bandwidth, then the line with its delay.
//!
//! A queue whose discipline decides by arrivals alone transmits each packet as soon as it is pushed, ahead of time: the
//! result cannot depend on the time of calls. The others decide when a packet is next to transmit.

mod cross_traffic;

use posthaste_units::{Dscp, Instant, Seed};

use crate::plans::background::CrossTraffic;
use crate::queueing::class_queue::{ClassQueue, QueuedPacket};
use crate::queueing::context::LinkContext;
use crate::queueing::exit::PacketEntry;
use crate::queueing::scheduler::ClassScheduler;
use crate::queueing::transmitter::{Transmission, Transmitter};
use crate::{ClassCounters, Packet, Plan};

/// Queues, bandwidth and line of one link.
pub(crate) struct DummynetPipe<P> {
    queues: Vec<ClassQueue<P>>,
    scheduler: Option<ClassScheduler>,
    cross_traffic: Option<CrossTraffic>,
    transmitter: Transmitter,
    ahead: bool,
    /// Departure of the last packet that kept its place.
    tail: Instant,
    /// Position of the link's packet that was transmitted last.
    position: u64,
}

impl<P: Packet> DummynetPipe<P> {
    pub(crate) fn new(plan: &Plan, seed: Seed) -> Self {
        let queue = || ClassQueue::new(plan.queue.discipline);
        let classes = plan
            .classes
            .as_deref()
            .filter(|classes| !classes.list.is_empty());
        let queues: Vec<ClassQueue<P>> = match classes {
            Some(classes) => classes.list.iter().map(|_| queue()).collect(),
            None => vec![queue()],
        };
        Self {
            ahead: classes.is_none() && queues[0].policy.decides_on_arrival() && !plan.changeable,
            queues,
            scheduler: classes.map(ClassScheduler::new),
            cross_traffic: CrossTraffic::from_plan(plan, seed),
            transmitter: Transmitter::new(plan),
            tail: Instant::ORIGIN,
            position: 1,
        }
    }

    /// Restores the initial state in the same memory.
    pub(crate) fn restart(&mut self, plan: &Plan, seed: Seed) {
        for queue in &mut self.queues {
            queue.restart();
            if !self.ahead {
                queue.policy = plan.queue.discipline.start();
            }
        }
        if let (Some(scheduler), Some(classes)) = (&mut self.scheduler, plan.classes.as_deref()) {
            *scheduler = ClassScheduler::new(classes);
        }
        self.cross_traffic = CrossTraffic::from_plan(plan, seed);
        self.transmitter.restart();
        self.tail = Instant::ORIGIN;
        self.position = 1;
    }

    /// Follows the plan of a change. Queued packets stay.
    pub(crate) fn change(&mut self, plan: &Plan) {
        self.transmitter.change(plan);
    }

    /// Enqueues a packet, or drops it if the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: PacketEntry<P>, context: &mut LinkContext<'_, P>) {
        let now = entry.arrived;
        let class = self.class(context.plan, entry.packet.dscp());
        let queue = &mut self.queues[class];
        if !self.ahead {
            queue.push(now, QueuedPacket::Own(entry), context);
        } else if queue.has_room(now, context.plan, entry.packet.bytes()) {
            let at = now.max(self.transmitter.free());
            self.transmit(0, entry, at, context);
        } else {
            queue.refuse(now, QueuedPacket::Own(entry), context.exit);
        }
    }

    /// Index of a code point's class.
    fn class(&self, plan: &Plan, dscp: Dscp) -> usize {
        match (&self.scheduler, &plan.classes) {
            (Some(_), Some(classes)) => classes.index_of(dscp),
            _ => 0,
        }
    }

    /// Transmits a packet without effects, in a link without cross traffic, or drops it if the queue is full.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        now: Instant,
        position: u64,
        deviation: f64,
        packet: P,
        context: &mut LinkContext<'_, P>,
    ) {
        let bytes = packet.bytes();
        if !self.queues[0].has_room(now, context.plan, bytes) {
            return context.exit.refuse(now, position, packet);
        }
        let transmission = Transmission {
            position,
            arrived: now,
            start: now,
            bytes,
        };
        let through = self.occupy(0, transmission, context);
        let delay = self
            .transmitter
            .delay(context, position, through, deviation);
        let due = through + delay;
        self.tail = self.in_order(context.plan, due);
        let waited = self.tail.since(due);
        context.delayed(delay + waited, waited);
        debug_assert!(self.tail >= now, "a packet leaves before it arrives");
        context.exit.pass(now, self.tail, position, packet);
    }

    /// Transmits packets up to `now`, unless that was done ahead of time. Returns the time of the last event.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        context: &mut LinkContext<'_, P>,
    ) -> Option<Instant> {
        if self.ahead {
            return None;
        }
        self.run(now, context)
    }

    /// Transmits while a packet of the link waits. Later events affect nothing.
    fn run(&mut self, until: Instant, context: &mut LinkContext<'_, P>) -> Option<Instant> {
        let mut last = None;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            if !self.cross_traffic_comes(next, context) {
                self.step(next, context);
            }
            debug_assert!(
                last.is_none_or(|last| last <= next),
                "events of a queue go back"
            );
            last = Some(next);
        }
        last
    }

    /// Transmits the next packet, unless that is after `until`.
    fn step(&mut self, until: Instant, context: &mut LinkContext<'_, P>) -> bool {
        let Some(now) = self.due().filter(|due| *due <= until) else {
            return false;
        };
        let ready =
            (0..self.queues.len()).filter(|class| self.ready(*class).is_some_and(|at| at <= now));
        let class = match &self.scheduler {
            Some(scheduler) => scheduler
                .choose(now, ready)
                .expect("a class is ready at the time of the next transmission"),
            None => 0,
        };
        match self.queues[class].pop(now, context.exit) {
            Some(QueuedPacket::Own(entry)) => self.transmit(class, entry, now, context),
            Some(QueuedPacket::Other { arrived, bytes }) => {
                self.occupy_for_cross_traffic(class, arrived, now, bytes, context);
            }
            None => {}
        }
        true
    }

    /// Earliest transmission of the queue's first packet.
    fn ready(&self, class: usize) -> Option<Instant> {
        let first = self.queues[class].first()?.arrived();
        let opens = self
            .scheduler
            .as_ref()
            .map(|scheduler| scheduler.opens(class));
        Some(
            first
                .max(self.transmitter.free())
                .max(opens.unwrap_or_default()),
        )
    }

    /// True if packets are transmitted when pushed, ahead of time.
    pub(crate) fn sends_ahead(&self) -> bool {
        self.ahead
    }

    /// Next transmission, or next packet of cross traffic, since it may push out others. `None` if no packet of the
    /// link waits.
    pub(crate) fn next(&self) -> Option<Instant> {
        if !self.queues.iter().any(ClassQueue::has_own) {
            return None;
        }
        let cross_traffic = self.cross_traffic.as_ref().map(CrossTraffic::next);
        self.due().into_iter().chain(cross_traffic).min()
    }

    /// Next transmission, of the link or of cross traffic.
    fn due(&self) -> Option<Instant> {
        (0..self.queues.len())
            .filter_map(|class| self.ready(class))
            .min()
    }

    /// Transmits a packet at `now`, after those before it.
    #[inline]
    fn transmit(
        &mut self,
        class: usize,
        entry: PacketEntry<P>,
        now: Instant,
        context: &mut LinkContext<'_, P>,
    ) {
        let (position, bytes) = (entry.position, entry.packet.bytes());
        self.position = position;
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.charge(class, now, context.plan.length(bytes), bytes);
        }
        let packet = Transmission {
            position,
            arrived: entry.arrived,
            start: now,
            bytes,
        };
        let through = self.occupy(class, packet, context);
        if entry.at_once {
            return context.exit.deliver(entry, through);
        }
        let delay = self
            .transmitter
            .delay(context, position, through, entry.deviation);
        let due = through + delay + entry.extra_delay;
        let left = self.in_order(context.plan, due);
        let waited = left.since(due);
        // The delay that a pattern adds to this packet is no jitter.
        context.delayed(delay + waited, waited);
        if entry.hold == 0 {
            self.tail = left;
        }
        context.exit.deliver(entry, left);
    }

    /// Occupies the bandwidth. Returns the end of the transmission.
    #[inline(always)]
    fn occupy(
        &mut self,
        class: usize,
        packet: Transmission,
        context: &LinkContext<'_, P>,
    ) -> Instant {
        let through = self.transmitter.send(context, packet);
        debug_assert!(
            through >= packet.start,
            "a transmission ends before it begins"
        );
        self.queues[class].occupy(through, packet.bytes);
        through
    }

    /// Departure not before the previous packet, if the plan keeps order.
    fn in_order(&self, plan: &Plan, left: Instant) -> Instant {
        if plan.keeps_order {
            left.max(self.tail)
        } else {
            left
        }
    }

    /// Number of the link's packets that wait for transmission.
    pub(crate) fn queued(&self) -> usize {
        self.queues.iter().map(ClassQueue::own).sum()
    }

    pub(crate) fn class_counters(&self) -> Vec<ClassCounters> {
        let with_drops = |(counters, queue): (ClassCounters, &ClassQueue<P>)| ClassCounters {
            dropped: queue.dropped.all,
            ..counters
        };
        let scheduler = self.scheduler.iter().flat_map(ClassScheduler::counters);
        scheduler.zip(&self.queues).map(with_drops).collect()
    }
}

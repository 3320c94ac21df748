//! One direction of a link: push packets as they arrive, pop them as they leave.
//!
//! Each pushed packet comes out of [`Link::pop`] exactly once, with its fate. Copies come out in addition. `chance` and
//! the pattern decide on arrival, `pipe` or `netem` model queue, bandwidth and delay, and `exit` applies bit errors and
//! order.

use std::sync::Arc;

use posthaste_units::{Instant, Seed, Span};

use crate::chance::{Chance, Draw};
use crate::packets::bit_errors::BitErrors;
use crate::pattern::{Cursor, LossShare, PacketEffects};
use crate::queueing::context::LinkContext;
use crate::queueing::exit::{Exit, PacketEntry};
use crate::queueing::netem::Netem;
use crate::queueing::pipe::DummynetPipe;
use crate::{
    BackgroundCounters, ClassCounters, Departure, DropReason, Fate, LinkCounters, Order, Packet,
    Plan,
};

/// One direction of a link.
pub struct Link<P> {
    plan: Arc<Plan>,
    /// Packets pushed so far.
    position: u64,
    /// Arrival of the first packet.
    began: Instant,
    /// Decisions up to here are final: no packet arrives before it.
    decided: Instant,
    cursor: Option<Cursor>,
    chance: Chance,
    path: Path<P>,
    /// Each packet gets its departure time when pushed, unless it is held back.
    ahead: bool,
    /// As `ahead`, and there is no cross traffic.
    alone: bool,
    exit: Exit<P>,
    counters: LinkCounters,
}

enum Path<P> {
    Pipe(DummynetPipe<P>),
    Netem(Netem),
}

impl<P: Packet> Link<P> {
    /// A link that follows `plan`, with the streams of `seed`; see [`Plan::check`].
    pub fn new(plan: &Arc<Plan>, seed: Seed) -> Self {
        let path = match plan.order {
            Order::Dummynet => Path::Pipe(DummynetPipe::new(plan, seed)),
            Order::Netem => Path::Netem(Netem::new(plan)),
        };
        let ahead = match &path {
            Path::Pipe(pipe) => pipe.sends_ahead(),
            Path::Netem(_) => true,
        };
        Self {
            position: 0,
            began: Instant::ORIGIN,
            decided: Instant::ORIGIN,
            cursor: plan.script.as_ref().map(|script| script.cursor()),
            chance: Chance::new(plan, seed),
            ahead,
            alone: ahead && plan.background.is_none(),
            path,
            exit: Exit::new(BitErrors::new(plan.bit_error_rate, seed)),
            counters: LinkCounters::default(),
            plan: plan.clone(),
        }
    }

    /// Restarts the link with this seed in the same memory, equal to a new link with the same plan. Packets inside are
    /// discarded, and the next packet is the first.
    pub fn restart(&mut self, seed: Seed) {
        let plan = &self.plan;
        self.position = 0;
        (self.began, self.decided) = (Instant::ORIGIN, Instant::ORIGIN);
        if let Some(cursor) = &mut self.cursor {
            cursor.rewind();
        }
        self.chance = Chance::new(plan, seed);
        match &mut self.path {
            Path::Pipe(pipe) => pipe.restart(plan, seed),
            Path::Netem(netem) => netem.restart(),
        }
        let errors = BitErrors::new(plan.bit_error_rate, seed);
        self.exit.restart(errors);
        self.counters = LinkCounters::default();
    }

    /// Follows `plan` from `now` on; see [`change`](crate::change) for the effects. Later packets arrive no earlier.
    ///
    /// The discipline of a queue, classes, cross traffic, bit errors, order and pattern do not change.
    pub fn change(&mut self, now: Instant, plan: &Arc<Plan>) {
        let at = self.arrival(now);
        self.settle(at);
        self.decided = at;
        self.chance.change(&self.plan, plan);
        match &mut self.path {
            Path::Pipe(pipe) => pipe.change(plan),
            Path::Netem(netem) => netem.change(plan),
        }
        self.plan = plan.clone();
        self.assert_conserved();
    }

    /// Adds a packet that arrives at `now`. Returns its effective arrival.
    ///
    /// `now` may precede a time already passed to `pop`. It then counts unless a decision that depends on it is final.
    /// Arrivals never decrease. If a queue decides by waiting time or drops from its head, or a packet was held back
    /// for the maximum time, departures are final and the packet arrives at that moment.
    pub fn push(&mut self, now: Instant, packet: P) -> Instant {
        let arrived = self.arrival(now);
        self.settle(arrived);
        debug_assert!(arrived >= self.decided, "arrivals decrease");
        self.decided = arrived;
        self.position += 1;
        if self.position == 1 {
            self.began = arrived;
        }
        self.counters.pushed.add(packet.bytes());
        let draw = self.chance.draw(&self.plan);
        let calm = draw.is_nothing();
        let (position, elapsed) = (self.position, arrived.since(self.began));
        let is_busy = |cursor: &Cursor| cursor.is_busy(position, elapsed);
        let busy = self.cursor.as_ref().is_some_and(is_busy);
        if calm
            && !busy
            && self.exit.is_straight()
            && self.alone
            && !self.plan.is_out(arrived)
            && let (Path::Pipe(pipe), mut context) = self.split()
        {
            // The fast path of most packets.
            pipe.pass(arrived, position, draw.deviation, packet, &mut context);
        } else {
            self.push_with(arrived, draw, busy, packet);
        }
        self.assert_conserved();
        arrived
    }

    /// The path, and the parts of the link that it works with.
    #[inline]
    fn split(&mut self) -> (&mut Path<P>, LinkContext<'_, P>) {
        let context = LinkContext {
            plan: &self.plan,
            began: self.began,
            exit: &mut self.exit,
            counters: &mut self.counters,
        };
        (&mut self.path, context)
    }

    /// The path of the few packets with effects.
    #[cold]
    fn push_with(&mut self, arrived: Instant, mut draw: Draw, busy: bool, packet: P) {
        let (position, elapsed) = (self.position, arrived.since(self.began));
        let step = match &mut self.cursor {
            Some(cursor) if busy => cursor.step(position, elapsed),
            _ => PacketEffects::default(),
        };
        draw.lost = self.chance.patterned_loss(step.loss, draw.lost);
        if self.plan.order == Order::Netem && draw.lost && draw.copied {
            (draw.lost, draw.copied) = (false, false);
        }
        let copies = if step.drop || draw.lost || self.plan.is_out(arrived) {
            0
        } else {
            step.copies + u32::from(draw.copied)
        };
        let copy = (copies > 0).then(|| packet.clone());
        let extra_delay = step.extra_delay;
        let hold = step.hold.max(draw.reorder.hold);
        let loss = step.loss;
        self.accept(arrived, step, draw, packet);
        for number in 1..=copies {
            if let Some(packet) = copy.clone() {
                // The transmission of the packet before it may begin at once.
                self.settle(arrived);
                self.accept_copy(arrived, number, extra_delay, hold, loss, packet);
            }
        }
    }

    /// The plan that the link follows.
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Effective arrival of a packet pushed at `now`.
    pub(crate) fn arrival(&self, now: Instant) -> Instant {
        now.max(self.decided)
    }

    /// True if nothing leaves after `now`. Makes all decisions up to then.
    pub(crate) fn is_quiet(&mut self, now: Instant) -> bool {
        let decided = self.settle(now);
        self.decided = self.decided.max(decided.unwrap_or_default());
        let next = match &self.path {
            Path::Pipe(pipe) => pipe.next(),
            Path::Netem(_) => None,
        };
        next.is_none() && self.exit.is_quiet(now)
    }

    fn accept(&mut self, arrived: Instant, step: PacketEffects, draw: Draw, packet: P) {
        let entry = PacketEntry {
            position: self.position,
            copy: 0,
            arrived,
            deviation: draw.deviation,
            extra_delay: step.extra_delay,
            at_once: draw.reorder.at_once,
            hold: step.hold.max(draw.reorder.hold),
            congested: false,
            flips: step.flips,
            too_big: self.plan.is_too_big(&packet),
            packet,
        };
        if step.drop {
            self.exit.drop(entry, arrived, DropReason::Pattern);
        } else if self.plan.is_out(arrived) {
            self.exit.drop(entry, arrived, DropReason::Outage);
        } else if draw.lost {
            self.exit.drop(entry, arrived, DropReason::Random);
        } else {
            self.send(entry);
        }
    }

    /// Accepts a copy. It is delayed and held back like its packet, so that it follows it.
    fn accept_copy(
        &mut self,
        arrived: Instant,
        number: u32,
        extra_delay: Span,
        hold: u32,
        loss: Option<LossShare>,
        packet: P,
    ) {
        self.counters.copied.add(packet.bytes());
        let entry = PacketEntry {
            position: self.position,
            copy: number,
            arrived,
            deviation: self.chance.copy_deviation(&self.plan),
            extra_delay,
            at_once: false,
            hold,
            congested: false,
            flips: Vec::new(),
            too_big: self.plan.is_too_big(&packet),
            packet,
        };
        if self.plan.order == Order::Netem && self.loses_copy(loss) {
            self.exit.drop(entry, arrived, DropReason::Random);
        } else {
            self.send(entry);
        }
    }

    fn loses_copy(&mut self, loss: Option<LossShare>) -> bool {
        let lost = self.chance.loses();
        self.chance.patterned_loss(loss, lost)
    }

    fn send(&mut self, entry: PacketEntry<P>) {
        let (path, mut context) = self.split();
        match path {
            Path::Pipe(pipe) => {
                pipe.catch_up(entry.arrived, &mut context);
                pipe.push(entry, &mut context);
            }
            Path::Netem(netem) => netem.push(entry, &mut context),
        }
    }

    /// Makes all decisions up to `now`. Returns the time of the last one.
    #[inline]
    fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.is_decided() {
            return None;
        }
        self.decide(now)
    }

    fn decide(&mut self, now: Instant) -> Option<Instant> {
        let (path, mut context) = self.split();
        let sent = match path {
            Path::Pipe(pipe) => pipe.advance(now, &mut context),
            Path::Netem(_) => None,
        };
        sent.max(self.exit.release(now))
    }

    /// True if all packets inside have a departure time.
    fn is_decided(&self) -> bool {
        self.ahead && !self.exit.holds()
    }

    /// The next packet that has left by `now`, in order of departure.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Departure<P>> {
        let decided = self.settle(now);
        self.decided = self.decided.max(decided.unwrap_or_default());
        let mut departure = self.exit.pop(now)?;
        if let Fate::Delivered(marks) = departure.fate
            && marks.flipped == 0
            && self.plan.is_too_big(&departure.packet)
        {
            departure.fate = Fate::Dropped(DropReason::TooBig);
        }
        debug_assert!(departure.left <= now, "a packet leaves in the future");
        self.counters.came_out(&departure);
        self.assert_conserved();
        Some(departure)
    }

    /// Panics unless offered packets are delivered, dropped or inside. Checked in debug builds.
    fn assert_conserved(&self) {
        if cfg!(debug_assertions) {
            let queued = match &self.path {
                Path::Pipe(pipe) => pipe.queued(),
                Path::Netem(_) => 0,
            };
            let inside = queued + self.exit.packets();
            let offered = self.counters.pushed.packets + self.counters.copied.packets;
            assert_eq!(
                self.counters.inside(),
                inside as u64,
                "{offered} packets were offered to a link, and some are lost or made up"
            );
        }
    }

    /// Time of the next call of `pop`; `None` if nothing is inside. Occasionally no packet comes out then.
    #[inline]
    pub fn wake(&self) -> Option<Instant> {
        if self.is_decided() {
            return self.exit.next();
        }
        self.wake_to_decide()
    }

    /// Time of the next departure or decision.
    fn wake_to_decide(&self) -> Option<Instant> {
        let next = match &self.path {
            Path::Pipe(pipe) => pipe.next(),
            Path::Netem(_) => None,
        };
        next.into_iter().chain(self.exit.wake()).min()
    }

    /// Counters so far.
    pub const fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Counters of each class, in the order of [`Plan::classes`]; empty without classes.
    pub fn class_counters(&self) -> Vec<ClassCounters> {
        match &self.path {
            Path::Pipe(pipe) => pipe.class_counters(),
            Path::Netem(_) => Vec::new(),
        }
    }

    /// Counters of the [cross traffic](crate::BackgroundTraffic), as far as packets have met it; `None` without cross
    /// traffic.
    pub fn background_counters(&self) -> Option<BackgroundCounters> {
        match &self.path {
            Path::Pipe(pipe) => pipe.background_counters(),
            Path::Netem(_) => None,
        }
    }
}

//! One direction of one link: push packets as they arrive, pop them as they leave.
//!
//! Everything pushed comes out of [`Link::pop`] exactly once, with its fate, and copies in
//! addition. What happens on the way is left to `chance` and the pattern (on arrival), `pipe` or
//! `netem` (queue, bandwidth, delay) and `exit` (bit errors, order).

use std::sync::Arc;

use posthaste_units::{Instant, Seed, Span};

use crate::bit_errors::BitErrors;
use crate::chance::{Chance, Draw};
use crate::exit::{Entry, Exit};
use crate::netem::Netem;
use crate::pattern::{Cursor, Step};
use crate::pipe::Pipe;
use crate::{BackgroundCounters, ClassCounters, Counters, Order, Packet, Passage, Plan, Reason};

/// One direction of one link.
pub struct Link<P> {
    plan: Arc<Plan>,
    /// How many packets have been pushed.
    position: u64,
    /// When the first packet arrived.
    began: Instant,
    /// What has been decided up to here stands: nothing arrives before it.
    decided: Instant,
    cursor: Option<Cursor>,
    chance: Chance,
    path: Path<P>,
    /// Whatever is pushed has its time at once, unless it is held back.
    ahead: bool,
    /// That, and nobody else sends.
    alone: bool,
    exit: Exit<P>,
    counters: Counters,
}

enum Path<P> {
    Pipe(Pipe<P>),
    Netem(Netem),
}

impl<P: Packet> Link<P> {
    /// A link that does what `plan` says, by the streams of `seed`; see [`Plan::check`].
    pub fn new(plan: &Arc<Plan>, seed: Seed) -> Self {
        let path = match plan.order {
            Order::Dummynet => Path::Pipe(Pipe::new(plan, seed)),
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
            counters: Counters::default(),
            plan: plan.clone(),
        }
    }

    /// Begins anew, as a new link with the same plan and this seed would, in the memory it has:
    /// what is inside is forgotten, and the next packet is the first.
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
        self.counters = Counters::default();
    }

    /// A packet arrives at `now`; returns the arrival as it counts.
    ///
    /// `now` may lie before a time already popped at. It counts as it is unless something that
    /// depends on it has been decided: arrivals never decrease, and where a queue decides by the
    /// waiting time or drops from its head, or a packet was held back for as long as can be, what
    /// has come out already stands and the packet arrives at that moment.
    pub fn push(&mut self, now: Instant, packet: P) -> Instant {
        let arrived = self.arrival(now);
        self.settle(arrived);
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
            && let Path::Pipe(pipe) = &mut self.path
        {
            // The way of most packets, without what few have.
            let (bytes, deviation) = (packet.bytes(), draw.deviation);
            match pipe.pass(arrived, position, bytes, deviation, &self.plan, self.began) {
                Some(left) => self.exit.pass(arrived, left, position, packet),
                None => self.exit.refuse(arrived, position, packet),
            }
        } else {
            self.push_with(arrived, draw, busy, packet);
        }
        arrived
    }

    /// A packet to which something may happen: few.
    #[cold]
    fn push_with(&mut self, arrived: Instant, mut draw: Draw, busy: bool, packet: P) {
        let (position, elapsed) = (self.position, arrived.since(self.began));
        let step = match &mut self.cursor {
            Some(cursor) if busy => cursor.step(position, elapsed),
            _ => Step::default(),
        };
        if self.plan.order == Order::Netem && draw.lost && draw.copied {
            (draw.lost, draw.copied) = (false, false);
        }
        let copies = if step.drop || draw.lost {
            0
        } else {
            step.copies + u32::from(draw.copied)
        };
        let copy = (copies > 0).then(|| packet.clone());
        let behind = (step.extra_delay, step.hold.max(draw.turn.hold));
        self.accept(arrived, step, draw, packet);
        for number in 1..=copies {
            if let Some(packet) = copy.clone() {
                self.accept_copy(arrived, number, behind, packet);
            }
        }
    }

    /// The arrival as it would count for a packet pushed now.
    pub(crate) fn arrival(&self, now: Instant) -> Instant {
        now.max(self.decided)
    }

    /// Whether nothing is left to leave after `now`; decides what is to be decided by then.
    pub(crate) fn is_quiet(&mut self, now: Instant) -> bool {
        let decided = self.settle(now);
        self.decided = self.decided.max(decided.unwrap_or_default());
        let next = match &self.path {
            Path::Pipe(pipe) => pipe.next(),
            Path::Netem(_) => None,
        };
        next.is_none() && self.exit.is_quiet(now)
    }

    fn accept(&mut self, arrived: Instant, step: Step, draw: Draw, packet: P) {
        let entry = Entry {
            position: self.position,
            copy: 0,
            arrived,
            deviation: draw.deviation,
            extra_delay: step.extra_delay,
            at_once: draw.turn.at_once,
            hold: step.hold.max(draw.turn.hold),
            flips: step.flips,
            packet,
        };
        if step.drop {
            self.exit.drop(entry, arrived, Reason::Pattern);
        } else if draw.lost {
            self.exit.drop(entry, arrived, Reason::Random);
        } else {
            self.send(entry);
        }
    }

    /// A copy is delayed and held back as its packet is, so that it follows it.
    fn accept_copy(
        &mut self,
        arrived: Instant,
        number: u32,
        (extra_delay, hold): (Span, u32),
        packet: P,
    ) {
        self.counters.copied.add(packet.bytes());
        let entry = Entry {
            position: self.position,
            copy: number,
            arrived,
            deviation: self.chance.copy_deviation(&self.plan),
            extra_delay,
            at_once: false,
            hold,
            flips: Vec::new(),
            packet,
        };
        if self.plan.order == Order::Netem && self.chance.loses() {
            self.exit.drop(entry, arrived, Reason::Random);
        } else {
            self.send(entry);
        }
    }

    fn send(&mut self, entry: Entry<P>) {
        match &mut self.path {
            Path::Pipe(pipe) => {
                pipe.catch_up(entry.arrived, &self.plan, self.began, &mut self.exit);
                pipe.push(entry, &self.plan, self.began, &mut self.exit);
            }
            Path::Netem(netem) => netem.push(entry, &self.plan, self.began, &mut self.exit),
        }
    }

    /// Decides what is to be decided by `now`; returns when the last of it happened.
    #[inline]
    fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.is_decided() {
            return None;
        }
        self.decide(now)
    }

    fn decide(&mut self, now: Instant) -> Option<Instant> {
        let sent = match &mut self.path {
            Path::Pipe(pipe) => pipe.advance(now, &self.plan, self.began, &mut self.exit),
            Path::Netem(_) => None,
        };
        sent.max(self.exit.release(now))
    }

    /// Whether all that is inside has its time already.
    fn is_decided(&self) -> bool {
        self.ahead && !self.exit.holds()
    }

    /// The next packet whose time has come by `now`, in the order in which they leave.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Passage<P>> {
        let decided = self.settle(now);
        self.decided = self.decided.max(decided.unwrap_or_default());
        let passage = self.exit.pop(now)?;
        self.counters.came_out(&passage);
        Some(passage)
    }

    /// When to pop next; `None` where nothing is inside. Now and then nothing comes out then.
    #[inline]
    pub fn wake(&self) -> Option<Instant> {
        if self.is_decided() {
            return self.exit.next();
        }
        self.wake_to_decide()
    }

    /// The same where something is yet to be decided.
    fn wake_to_decide(&self) -> Option<Instant> {
        let next = match &self.path {
            Path::Pipe(pipe) => pipe.next(),
            Path::Netem(_) => None,
        };
        next.into_iter().chain(self.exit.wake()).min()
    }

    /// What went in and what has come out.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What each class has sent, in the order of [`Plan::classes`]; empty without classes.
    pub fn class_counters(&self) -> Vec<ClassCounters> {
        match &self.path {
            Path::Pipe(pipe) => pipe.class_counters(),
            Path::Netem(_) => Vec::new(),
        }
    }

    /// What became of the [background](crate::Background), as far as packets have met it; none
    /// where there is none.
    pub fn background_counters(&self) -> Option<BackgroundCounters> {
        match &self.path {
            Path::Pipe(pipe) => pipe.background_counters(),
            Path::Netem(_) => None,
        }
    }
}

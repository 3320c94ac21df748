//! Scheduler for the classes of one link.
//!
//! After HTB (Linux's `net/sched/sch_htb.c`): a class within its guaranteed rate goes first. The rest is lent to
//! classes below their ceilings, in proportion to their guarantees. Borrowed bandwidth is not charged to the borrower's
//! guarantee. Token buckets are stored exactly, as the times at which they will be full again. Lending uses start-time
//! fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996), while HTB counts deficits.

use posthaste_units::{BitRate, Instant, Span};

use crate::queueing::meter::Meter;
use crate::{Class, ClassCounters, Classes};

/// Scheduler state of the classes of one link.
pub(crate) struct ClassScheduler {
    classes: Vec<ClassState>,
    burst: u64,
    /// Start tag of the last borrowed transmission.
    lent: u128,
}

struct ClassState {
    guaranteed: BitRate,
    ceiling: BitRate,
    within: Meter,
    below: Meter,
    tag: u128,
    counters: ClassCounters,
}

impl ClassScheduler {
    pub(crate) fn new(classes: &Classes) -> Self {
        let state = |class: &Class| ClassState {
            guaranteed: class.guaranteed,
            ceiling: class.ceiling,
            within: Meter::default(),
            below: Meter::default(),
            tag: 0,
            counters: ClassCounters::default(),
        };
        Self {
            classes: classes.list.iter().map(state).collect(),
            burst: classes.burst.as_bytes(),
            lent: 0,
        }
    }

    /// Earliest time at which the ceiling allows the class to send.
    pub(crate) fn opens(&self, class: usize) -> Instant {
        self.classes[class].below.free()
    }

    /// The class that sends at `now`, among `ready` classes below their ceilings.
    pub(crate) fn choose(
        &self,
        now: Instant,
        ready: impl Iterator<Item = usize> + Clone,
    ) -> Option<usize> {
        let within = ready.clone().filter(|class| self.is_within(*class, now));
        within
            .min_by_key(|class| self.classes[*class].within.free())
            .or_else(|| ready.min_by_key(|class| self.classes[*class].tag.max(self.lent)))
    }

    fn is_within(&self, class: usize, now: Instant) -> bool {
        self.classes[class].within.free() <= now
    }

    /// Charges a transmission of the class at `now`: `length` bytes on the line, `bytes` of them the packet's.
    pub(crate) fn charge(&mut self, class: usize, now: Instant, length: u64, bytes: u32) {
        debug_assert!(
            self.opens(class) <= now,
            "class {class} sends above its ceiling"
        );
        let within = self.is_within(class, now);
        let state = &mut self.classes[class];
        if within {
            let since = now - credit(self.burst, state.guaranteed);
            state
                .within
                .send(since, length, |_| (Some(state.guaranteed), None));
            state.counters.guaranteed.add(bytes);
        } else {
            let start = state.tag.max(self.lent);
            let rate = u128::from(state.guaranteed.as_bits());
            state.tag = start + (u128::from(length) << 64) / rate;
            debug_assert!(state.tag >= start, "the tag of class {class} has wrapped");
            self.lent = start;
            state.counters.borrowed.add(bytes);
        }
        let since = now - credit(self.burst, state.ceiling);
        state
            .below
            .send(since, length, |_| (Some(state.ceiling), None));
    }

    pub(crate) fn counters(&self) -> impl Iterator<Item = ClassCounters> + '_ {
        self.classes.iter().map(|state| state.counters)
    }
}

/// Time span for which a rate may catch up.
fn credit(burst: u64, rate: BitRate) -> Span {
    Span::from_secs_f64(burst as f64 / rate.as_bytes_f64())
}

//! Deadlines that expire in the order in which they were set.
//!
//! A timeout with one length for all connections needs a FIFO only. Links are stored by slot, so setting and clearing
//! cost a few stores. Memory depends on the number of open connections, not on the number of requests made.

use std::marker::PhantomData;

use posthaste_units::Instant;

use crate::exchange::slots::Slot;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    due: Instant,
    before: u32,
    after: u32,
    queued: bool,
}

/// Slots in the order of their deadlines.
pub(crate) struct Fifo<S> {
    links: Vec<Link>,
    first: u32,
    last: u32,
    slots: PhantomData<S>,
}

impl<S: Slot> Fifo<S> {
    pub(crate) const fn new() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
            slots: PhantomData,
        }
    }

    /// Sets the deadline of `slot`. The slot has none, and `due` is not before earlier deadlines.
    pub(crate) fn push(&mut self, slot: S, due: Instant) {
        let index = slot.index();
        if self.links.len() <= index {
            let empty = Link {
                due: Instant::ORIGIN,
                before: NONE,
                after: NONE,
                queued: false,
            };
            self.links.resize(index + 1, empty);
        }
        debug_assert!(!self.links[index].queued, "a slot has one deadline");
        debug_assert!(
            self.last == NONE || self.links[self.last as usize].due <= due,
            "a deadline is set before an earlier one"
        );
        self.links[index] = Link {
            due,
            before: self.last,
            after: NONE,
            queued: true,
        };
        let slot = index as u32;
        match self.last {
            NONE => self.first = slot,
            last => self.links[last as usize].after = slot,
        }
        self.last = slot;
    }

    /// Clears the deadline of `slot`, if it has one.
    pub(crate) fn remove(&mut self, slot: S) {
        let index = slot.index();
        let Some(link) = self.links.get_mut(index).filter(|link| link.queued) else {
            return;
        };
        let slot = index as u32;
        link.queued = false;
        let Link { before, after, .. } = *link;
        debug_assert!(
            before == NONE || self.links[before as usize].after == slot,
            "the slot before leads elsewhere"
        );
        debug_assert!(
            after == NONE || self.links[after as usize].before == slot,
            "the slot after leads elsewhere"
        );
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
    }

    /// True if `slot` has a deadline.
    pub(crate) fn contains(&self, slot: S) -> bool {
        self.links.get(slot.index()).is_some_and(|link| link.queued)
    }

    /// The earliest deadline.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        (self.first != NONE).then(|| self.links[self.first as usize].due)
    }

    /// Removes and returns the first slot, if its deadline has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<S> {
        let first = self.first;
        if first == NONE || self.links[first as usize].due > now {
            return None;
        }
        let slot = S::from_index(first as usize);
        self.remove(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    use crate::exchange::slots::ConnectionSlot;

    proptest! {
        #[test]
        fn agrees_with_a_plain_queue(acts in proptest::collection::vec((0usize..8, 0u8..3), 0..200)) {
            let mut fifo = Fifo::new();
            let mut plain: VecDeque<(ConnectionSlot, u64)> = VecDeque::new();
            for (time, (slot, act)) in acts.into_iter().enumerate() {
                let now = Instant::from_nanos(time as u64);
                let slot = ConnectionSlot::from_index(slot);
                match act {
                    0 if plain.iter().all(|(other, _)| *other != slot) => {
                        fifo.push(slot, now);
                        plain.push_back((slot, time as u64));
                    }
                    1 => {
                        fifo.remove(slot);
                        plain.retain(|(other, _)| *other != slot);
                    }
                    2 => prop_assert_eq!(fifo.pop_due(now), plain.pop_front().map(|(slot, _)| slot)),
                    _ => {}
                }
                prop_assert_eq!(fifo.next_due(), plain.front().map(|(_, t)| Instant::from_nanos(*t)));
            }
        }
    }
}

//! Deadlines that expire in the order in which they were set.
//!
//! A timeout with one length for all connections needs a FIFO only. Links are stored by slot, so setting and clearing
//! cost a few stores. Memory depends on the number of open connections, not on the number of requests made.

use posthaste_units::Instant;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    due: Instant,
    before: u32,
    after: u32,
    queued: bool,
}

/// Slots in the order of their deadlines.
pub(crate) struct Fifo {
    links: Vec<Link>,
    first: u32,
    last: u32,
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    /// Sets the deadline of `slot`. The slot has none, and `due` is not before earlier deadlines.
    pub(crate) fn push(&mut self, slot: u32, due: Instant) {
        let index = slot as usize;
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
        match self.last {
            NONE => self.first = slot,
            last => self.links[last as usize].after = slot,
        }
        self.last = slot;
    }

    /// Clears the deadline of `slot`, if it has one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize).filter(|link| link.queued) else {
            return;
        };
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
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.links
            .get(slot as usize)
            .is_some_and(|link| link.queued)
    }

    /// The earliest deadline.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        (self.first != NONE).then(|| self.links[self.first as usize].due)
    }

    /// Removes and returns the first slot, if its deadline has passed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let slot = self.first;
        if slot == NONE || self.links[slot as usize].due > now {
            return None;
        }
        self.remove(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_plain_queue(acts in proptest::collection::vec((0u32..8, 0u8..3), 0..200)) {
            let mut fifo = Fifo::new();
            let mut plain: VecDeque<(u32, u64)> = VecDeque::new();
            for (time, (slot, act)) in acts.into_iter().enumerate() {
                let now = Instant::from_nanos(time as u64);
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

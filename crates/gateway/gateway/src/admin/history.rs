//! The last fifteen minutes: counts and times in slots of five seconds, and counts by second for the rates.
//!
//! The history reads the counters once a second, on the thread of the administrative pages. Nothing of it is on the
//! path of requests. Time is an argument.

use std::collections::VecDeque;

use posthaste_units::{Instant, Span};

use super::reading::Reading;
use super::route_reading::{RouteReading, RouteRejections};
use crate::record::fine_histogram::{Percentile, TimeGrowth};
use crate::record::outcomes::Outcomes;

/// Interval between readings.
pub(crate) const EVERY: Span = Span::from_secs(1);
/// Length of a slot.
pub(crate) const SLOT: Span = Span::from_secs(5);
/// Length of the history.
pub(crate) const LENGTH: Span = Span::from_secs(15 * 60);
/// Number of slots.
const SLOTS: usize = (LENGTH.as_nanos() / SLOT.as_nanos()) as usize;
/// Readings kept for the rates: those of the last minute, and the one before.
const READINGS: usize = 61;

/// An interval of the history.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) from: Instant,
    pub(crate) until: Instant,
    pub(crate) outcomes: Outcomes,
    pub(crate) times: TimeGrowth,
    /// Busy share at the end of the slot. `None` if unknown.
    pub(crate) busy: Option<f64>,
}

/// Rates over the last seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// The time covered.
    pub(crate) over: Span,
    pub(crate) outcomes: Outcomes,
}

/// Percentiles over the last seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Percentiles {
    /// The time covered.
    pub(crate) over: Span,
    pub(crate) outcomes: Outcomes,
    pub(crate) times: TimeGrowth,
}

/// The part of a reading that is kept for the rates.
#[derive(Debug)]
struct Second {
    at: Instant,
    outcomes: Outcomes,
    routes: Vec<RouteReading>,
}

/// The history of a gateway.
#[derive(Debug)]
pub(crate) struct History {
    /// Oldest first.
    seconds: VecDeque<Second>,
    /// Oldest first.
    slots: VecDeque<Slot>,
    /// Start of the slot in progress.
    open: Reading,
}

impl Second {
    fn new(reading: &Reading) -> Self {
        Self {
            at: reading.at,
            outcomes: reading.outcomes,
            routes: reading.routes.clone(),
        }
    }
}

impl Slot {
    fn new(from: &Reading, until: &Reading, busy: Option<f64>) -> Self {
        Self {
            from: from.at,
            until: until.at,
            outcomes: until.outcomes.since(&from.outcomes),
            times: until.times.since(&from.times),
            busy,
        }
    }

    /// Rate of `count` in this slot, per second.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        let seconds = self.until.saturating_since(self.from).as_secs_f64();
        count as f64 / seconds.max(1e-9)
    }

    /// A percentile of the times of this slot.
    pub(crate) fn percentile(&self, percent: u64) -> Percentile {
        self.times.percentile(percent, self.outcomes.failed)
    }
}

impl Rates {
    /// Rate of `count`, per second. `None` if no time is covered.
    pub(crate) fn per_second(&self, count: u64) -> Option<f64> {
        (!self.over.is_zero()).then(|| count as f64 / self.over.as_secs_f64())
    }
}

impl Percentiles {
    pub(crate) fn percentile(&self, percent: u64) -> Percentile {
        self.times.percentile(percent, self.outcomes.failed)
    }
}

impl History {
    /// Starts a history with its first reading.
    pub(crate) fn new(first: Reading) -> Self {
        Self {
            seconds: VecDeque::from([Second::new(&first)]),
            slots: VecDeque::new(),
            open: first,
        }
    }

    /// Adds a reading. Ends the slot in progress if its time has passed.
    pub(crate) fn push(&mut self, reading: Reading, busy: Option<f64>) {
        debug_assert!(reading.at >= self.open.at, "readings go back in time");
        self.seconds.push_back(Second::new(&reading));
        while self.seconds.len() > READINGS {
            self.seconds.pop_front();
        }
        // A tick may be a little early compared with the previous one.
        let length = reading.at.saturating_since(self.open.at) + EVERY / 2;
        if length >= SLOT {
            self.slots.push_back(Slot::new(&self.open, &reading, busy));
            while self.slots.len() > SLOTS {
                self.slots.pop_front();
            }
            self.open = reading;
        }
    }

    /// The ended slots, oldest first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// Rates from about `over` ago until `now`.
    pub(crate) fn rates(&self, now: &Reading, over: Span) -> Rates {
        let before = self.before(now, over);
        Rates {
            over: now.at.saturating_since(before.at),
            outcomes: now.outcomes.since(&before.outcomes),
        }
    }

    /// Routes with rejections from about `over` ago until `now`.
    pub(crate) fn rejections(&self, now: &Reading, over: Span) -> Vec<RouteRejections> {
        RouteReading::rejections(&now.routes, &self.before(now, over).routes)
    }

    /// The newest reading that is old enough, or else the oldest.
    fn before(&self, now: &Reading, over: Span) -> &Second {
        let age = |second: &Second| now.at.saturating_since(second.at);
        let mut readings = self.seconds.iter().rev();
        readings
            .find(|second| age(second) + EVERY / 2 >= over)
            .or_else(|| self.seconds.front())
            .expect("a history has a reading")
    }

    /// Percentiles from about `over` ago until `now`, in whole slots and the one in progress.
    pub(crate) fn percentiles(&self, now: &Reading, over: Span) -> Percentiles {
        let open = Slot::new(&self.open, now, None);
        let age = |slot: &Slot| now.at.saturating_since(slot.from);
        let within = |slot: &&Slot| age(slot) <= over + SLOT / 2;
        let slots: Vec<&Slot> = self.slots.iter().filter(within).chain([&open]).collect();
        let mut outcomes = Outcomes::default();
        for slot in &slots {
            outcomes.add(&slot.outcomes);
        }
        Percentiles {
            over: slots.first().map_or(Span::ZERO, |slot| age(slot)),
            outcomes,
            times: TimeGrowth::sum(slots.iter().map(|slot| &slot.times)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fine_histogram::FineHistogram;

    /// Counters of a gateway at a moment of the test.
    #[derive(Default)]
    struct Counters {
        times: FineHistogram,
        outcomes: Outcomes,
    }

    impl Counters {
        fn answer(&mut self, millis: u64, count: u64) {
            self.outcomes.succeeded += count;
            for _ in 0..count {
                self.times.add(Span::from_millis(millis));
            }
        }

        fn at(&self, second: u64) -> Reading {
            Reading {
                at: Instant::ORIGIN + Span::from_secs(1000 + second),
                outcomes: self.outcomes,
                times: self.times.counts(),
                routes: Vec::new(),
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_last_seconds_exactly() {
        let mut counters = Counters::default();
        let mut history = History::new(counters.at(0));
        for second in 1..=100 {
            // Second n has n requests, each tenth refused.
            counters.outcomes.succeeded += second;
            counters.outcomes.refused += u64::from(second % 10 == 0);
            history.push(counters.at(second), None);
        }
        let now = counters.at(100);
        let ten = history.rates(&now, Span::from_secs(10));
        assert_eq!(ten.over, Span::from_secs(10));
        assert_eq!(ten.outcomes.succeeded, (91..=100).sum::<u64>());
        assert_eq!(ten.per_second(ten.outcomes.refused), Some(0.1));
        let minute = history.rates(&now, Span::from_secs(60));
        assert_eq!(minute.outcomes.succeeded, (41..=100).sum::<u64>());
        assert_eq!(minute.outcomes.requests(), (41..=100).sum::<u64>() + 6);
    }

    #[test]
    fn a_young_history_states_the_time_that_it_covers() {
        let mut counters = Counters::default();
        let mut history = History::new(counters.at(0));
        assert_eq!(
            history
                .rates(&counters.at(0), Span::from_secs(10))
                .per_second(0),
            None
        );
        counters.answer(1, 6);
        history.push(counters.at(1), None);
        counters.answer(1, 3);
        let rates = history.rates(&counters.at(3), Span::from_secs(60));
        assert_eq!(
            (rates.over, rates.per_second(9)),
            (Span::from_secs(3), Some(3.0))
        );
        let shown = history.percentiles(&counters.at(3), Span::from_secs(900));
        assert_eq!((shown.over, shown.times.total()), (Span::from_secs(3), 9));
    }

    #[test]
    fn a_slot_without_requests_has_a_rate_of_zero_and_no_percentile() {
        let counters = Counters::default();
        let mut history = History::new(counters.at(0));
        for second in 1..=5 {
            history.push(counters.at(second), Some(0.25));
        }
        let slots: Vec<&Slot> = history.slots().collect();
        assert_eq!(slots.len(), 1);
        assert_eq!(slots[0].rate(slots[0].outcomes.requests()), 0.0);
        assert_eq!(slots[0].percentile(50), Percentile::NoData);
        assert_eq!(slots[0].busy, Some(0.25));
    }

    #[test]
    fn percentiles_of_a_minute_forget_what_is_older() {
        let mut counters = Counters::default();
        let mut history = History::new(counters.at(0));
        for second in 1..=200 {
            counters.answer(if second <= 100 { 800 } else { 2 }, 10);
            history.push(counters.at(second), None);
        }
        let now = counters.at(200);
        let minute = history.percentiles(&now, Span::from_secs(60));
        assert_eq!(
            (minute.over, minute.times.total()),
            (Span::from_secs(60), 600)
        );
        let Percentile::Below(p99) = minute.percentile(99) else {
            panic!("no percentile");
        };
        assert!(
            (Span::from_millis(2)..Span::from_micros(2_200)).contains(&p99),
            "{p99}"
        );
        let all = history.percentiles(&now, LENGTH);
        assert_eq!(all.times.total(), 2000);
        let Percentile::Below(p99) = all.percentile(99) else {
            panic!("no percentile");
        };
        assert!(
            (Span::from_millis(800)..Span::from_millis(851)).contains(&p99),
            "{p99}"
        );
    }

    #[test]
    fn refusals_do_not_change_percentiles_but_failures_do() {
        let mut counters = Counters::default();
        let history = History::new(counters.at(0));
        counters.answer(10, 98);
        let before = history.percentiles(&counters.at(1), LENGTH).percentile(99);
        counters.outcomes.refused += 1000;
        counters.outcomes.client_errors += 1000;
        let refused = history.percentiles(&counters.at(1), LENGTH);
        assert_eq!(refused.percentile(99), before);
        counters.outcomes.server_errors += 2;
        counters.outcomes.failed += 2;
        let failed = history.percentiles(&counters.at(1), LENGTH);
        assert!(matches!(failed.percentile(99), Percentile::Failed { .. }));
    }

    #[test]
    fn the_history_is_bounded_and_a_late_reading_makes_a_long_slot() {
        let mut counters = Counters::default();
        let mut history = History::new(counters.at(0));
        for second in 1..=2000 {
            history.push(counters.at(second), None);
        }
        assert_eq!(
            (history.slots.len(), history.seconds.len()),
            (SLOTS, READINGS)
        );
        counters.answer(1, 70);
        history.push(counters.at(2035), None);
        let last = history.slots().last().unwrap();
        assert_eq!(last.rate(last.outcomes.succeeded), 2.0);
    }
}

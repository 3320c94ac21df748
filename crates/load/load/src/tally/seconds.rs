//! The seconds of a run, joined from the reports of several sources.

use std::collections::BTreeMap;

use posthaste_units::{Instant, Span};

use crate::tally::LoadTally;

/// Interval of reports.
pub(crate) const SECOND: Span = Span::from_secs(1);
/// Seconds within which a source reports a second. Those of the others are then passed on without it.
const LATE: u64 = 2;

/// Measurements of an event loop, since its last report.
pub(crate) struct LoopSecond {
    /// Index of the loop.
    pub(crate) index: usize,
    /// Whole seconds of the run at the end of these measurements.
    pub(crate) second: u64,
    pub(crate) tally: Box<LoadTally>,
    /// True if the loop has ended.
    pub(crate) is_last: bool,
}

/// Seconds that are passed on when each source has reported them, each once and in order.
pub struct JoinedSeconds {
    /// The last second that each source has reported. [`u64::MAX`] after its end.
    reported: Vec<u64>,
    passed_on: u64,
    waiting: BTreeMap<u64, Box<LoadTally>>,
    /// Empty tallies for later seconds.
    spare: Vec<Box<LoadTally>>,
}

/// Returns the whole seconds of a run at `now`.
pub(crate) fn whole_seconds(now: Instant) -> u64 {
    now.since(Instant::ORIGIN).as_nanos() / SECOND.as_nanos()
}

impl JoinedSeconds {
    /// Waits for this number of sources.
    pub fn new(sources: usize) -> Self {
        Self {
            reported: vec![0; sources],
            passed_on: 0,
            waiting: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// Adds the measurements of a source until a second. Those of a second that was passed on belong to the next.
    pub fn add(&mut self, source: usize, second: u64, tally: &LoadTally) {
        let known = &mut self.reported[source];
        *known = second.max(*known);
        let second = second.max(self.passed_on + 1);
        let spare = &mut self.spare;
        let empty = || spare.pop().unwrap_or_else(|| Box::new(tally.emptied()));
        let joined = self.waiting.entry(second).or_insert_with(empty);
        joined.merge(tally);
    }

    /// Takes back the memory of a second that was passed on.
    pub fn reuse(&mut self, mut tally: Box<LoadTally>) {
        tally.clear();
        self.spare.push(tally);
    }

    /// Records that a source has ended.
    pub fn end(&mut self, source: usize) {
        self.reported[source] = u64::MAX;
    }

    /// Takes the next second that each source has reported, or that is overdue at `now`. Takes any if the run is over.
    pub fn take(&mut self, now: Instant, is_over: bool) -> Option<(u64, Box<LoadTally>)> {
        let complete = self.reported.iter().copied().min().unwrap_or_default();
        let overdue = whole_seconds(now).saturating_sub(LATE);
        let entry = self.waiting.first_entry()?;
        if !is_over && *entry.key() > complete.max(overdue) {
            return None;
        }
        self.passed_on = *entry.key();
        Some(entry.remove_entry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Instant {
        Instant::ORIGIN + SECOND * n
    }

    /// A second of a source in which this number of requests became due.
    fn due(intended: u64) -> LoadTally {
        let mut tally = LoadTally::new(vec![Instant::FAR_FUTURE], 1);
        tally.intended = intended;
        tally
    }

    fn taken(joined: &mut JoinedSeconds, now: Instant) -> Vec<(u64, u64)> {
        let take = || {
            joined
                .take(now, false)
                .map(|(at, tally)| (at, tally.intended))
        };
        std::iter::from_fn(take).collect()
    }

    #[test]
    fn a_second_is_passed_on_when_all_have_reported_it() {
        let mut joined = JoinedSeconds::new(2);
        joined.add(0, 1, &due(1));
        joined.add(0, 2, &due(10));
        assert_eq!(taken(&mut joined, seconds(2)), []);
        joined.add(1, 1, &due(100));
        assert_eq!(taken(&mut joined, seconds(2)), [(1, 101)]);
        joined.end(1);
        assert_eq!(taken(&mut joined, seconds(2)), [(2, 10)]);
    }

    #[test]
    fn seconds_of_a_silent_source_are_added_later_and_not_lost() {
        let mut joined = JoinedSeconds::new(2);
        joined.add(0, 1, &due(1));
        assert_eq!(taken(&mut joined, seconds(2)), []);
        assert_eq!(taken(&mut joined, seconds(3)), [(1, 1)]);
        joined.add(1, 1, &due(100));
        joined.add(0, 2, &due(10));
        assert_eq!(taken(&mut joined, seconds(3)), []);
        joined.add(1, 3, &due(1_000));
        assert_eq!(taken(&mut joined, seconds(3)), [(2, 110)]);
        joined.add(0, 3, &due(0));
        assert_eq!(taken(&mut joined, seconds(3)), [(3, 1_000)]);
    }
}

//! The events of a run.

use posthaste_stats::Recorder;
use posthaste_units::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::EventSummary;
use crate::outcome::Outcome;

/// Events of the replies to requests that became due in the measured time.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventTally {
    /// Due to first event, of all requests due. One without an event is longer than any bound.
    pub first: Recorder,
    /// Gaps between events. The wait after the last event of a reply that broke off is longer than its bound.
    pub gaps: Recorder,
    /// Mean gap of each stream with events at two instants or more. One that broke off is longer than any bound.
    pub periods: Recorder,
    /// Complete replies with two events or more, all of which arrived at one instant. They have no gap and no mean gap.
    pub at_once: u64,
    /// Events.
    pub events: u64,
    /// Complete replies with an end mark.
    pub with_end_mark: u64,
    /// Complete replies without one.
    pub without_end_mark: u64,
}

/// The end of a request whose reply is a stream of events.
pub(crate) struct EventEnd {
    pub(crate) outcome: Outcome,
    pub(crate) events: EventSummary,
    /// First due time.
    pub(crate) due: Instant,
    pub(crate) done: Instant,
    /// Beginning of the measured time.
    pub(crate) start: Instant,
}

impl EventTally {
    /// Records a gap in the reply to a request that was due `at` after the beginning.
    pub(crate) fn gap(&mut self, at: Span, gap: Span) {
        self.gaps.record(at, gap);
    }

    /// Records the end of a request.
    pub(crate) fn ended(&mut self, end: &EventEnd) {
        let EventEnd {
            outcome, events, ..
        } = *end;
        let at = end.due.since(end.start);
        let is_complete = outcome.is_complete();
        let waited = |since: Instant| outcome.waited(end.done.saturating_since(since));
        self.events += events.count;
        match events.first {
            Some(first) => self.first.record(at, first.saturating_since(end.due)),
            None => self.first.record_censored(at, waited(end.due)),
        }
        if let (Some(last), false) = (events.last, is_complete) {
            self.gaps.record_censored(at, waited(last));
        }
        match (events.first.zip(events.last), events.count) {
            _ if is_complete && events.is_at_once() => self.at_once += 1,
            (Some((first, last)), 2..) if is_complete => {
                let period = last.saturating_since(first) / (events.count - 1);
                self.periods.record(at, period);
            }
            // One event has no rate.
            (Some(_), _) if is_complete => {}
            _ => self.periods.record_censored(at, None),
        }
        if is_complete {
            self.with_end_mark += u64::from(events.has_end_mark);
            self.without_end_mark += u64::from(!events.has_end_mark);
        }
    }

    /// Removes all events and keeps the memory.
    pub(crate) fn clear(&mut self) {
        for times in [&mut self.first, &mut self.gaps, &mut self.periods] {
            times.clear();
        }
        (self.events, self.at_once) = (0, 0);
        (self.with_end_mark, self.without_end_mark) = (0, 0);
    }

    /// Adds the events of another loop or second.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.first.merge(&other.first);
        self.gaps.merge(&other.gaps);
        self.periods.merge(&other.periods);
        self.events += other.events;
        self.at_once += other.at_once;
        self.with_end_mark += other.with_end_mark;
        self.without_end_mark += other.without_end_mark;
    }
}

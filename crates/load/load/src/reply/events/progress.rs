//! The events of one reply, with their times.

use posthaste_units::{Instant, Span};

use super::EventPlan;
use super::reader::{EventPart, EventReader};

/// The events of the reply that is being read.
#[derive(Debug)]
pub(crate) struct EventProgress {
    reader: EventReader,
    arrived: Instant,
    summary: EventSummary,
    gaps: EventGaps,
}

/// Gaps between the events of a reply.
#[derive(Debug, Default)]
struct EventGaps {
    /// Gaps that the event loop has not recorded yet.
    known: Vec<Span>,
    /// Gaps of zero while all events have arrived at one instant. They count once another event arrives later: a reply
    /// that arrives whole does not show its gaps.
    at_once: usize,
}

/// The events of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventSummary {
    /// Number of events, without the end mark.
    pub(crate) count: u64,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
    pub(crate) has_end_mark: bool,
}

impl EventProgress {
    pub(crate) fn new(plan: &EventPlan) -> Self {
        Self {
            reader: EventReader::new(plan),
            arrived: Instant::ORIGIN,
            summary: EventSummary::default(),
            gaps: EventGaps::default(),
        }
    }

    /// Prepares for another reply.
    pub(crate) fn begin(&mut self) {
        self.reader.begin();
        self.summary = EventSummary::default();
        self.gaps.clear();
    }

    /// Sets the time of the bytes that follow.
    pub(crate) fn arrive(&mut self, now: Instant) {
        self.arrived = now;
    }

    /// Reads a piece of the body.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        let (summary, gaps, now) = (&mut self.summary, &mut self.gaps, self.arrived);
        self.reader.feed(piece, |part| summary.add(part, now, gaps));
    }

    /// Reads the end of the body.
    pub(crate) fn end(&mut self) {
        let (summary, gaps, now) = (&mut self.summary, &mut self.gaps, self.arrived);
        self.reader.end(|part| summary.add(part, now, gaps));
    }

    pub(crate) const fn summary(&self) -> EventSummary {
        self.summary
    }

    /// Takes the gaps since the last call.
    pub(crate) fn take_gaps(&mut self) -> impl Iterator<Item = Span> + '_ {
        self.gaps.known.drain(..)
    }
}

impl EventSummary {
    /// Returns true if there are several events, all of which arrived at one instant.
    pub(crate) fn is_at_once(&self) -> bool {
        self.count > 1 && self.first == self.last
    }

    fn add(&mut self, part: EventPart, now: Instant, gaps: &mut EventGaps) {
        if part == EventPart::EndMark {
            self.has_end_mark = true;
            return;
        }
        self.count += 1;
        self.first.get_or_insert(now);
        let last = self.last.replace(now);
        match last {
            Some(_) if self.is_at_once() => gaps.at_once += 1,
            Some(last) => gaps.push(now.saturating_since(last)),
            None => {}
        }
    }
}

impl EventGaps {
    /// Adds a gap after those of zero before it.
    fn push(&mut self, gap: Span) {
        let at_once = std::mem::take(&mut self.at_once);
        self.known.extend(std::iter::repeat_n(Span::ZERO, at_once));
        self.known.push(gap);
    }

    fn clear(&mut self) {
        self.known.clear();
        self.at_once = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::events::EventFormat;

    /// Returns the gaps in milliseconds between events that arrive at these times.
    fn gaps(arrivals: &[u64]) -> Vec<u64> {
        let mut progress = EventProgress::new(&EventPlan {
            format: EventFormat::Sse,
            end_mark: None,
        });
        progress.begin();
        for at in arrivals {
            progress.arrive(Instant::ORIGIN + Span::from_millis(*at));
            progress.feed(b"data: 1\n\n");
        }
        let gaps = progress.take_gaps();
        gaps.map(|gap| gap.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn events_of_one_instant_have_gaps_only_next_to_later_ones() {
        assert!(gaps(&[7]).is_empty());
        assert!(gaps(&[7, 7, 7]).is_empty());
        assert_eq!(gaps(&[7, 7, 7, 9, 9]), [0, 0, 2, 0]);
    }
}

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
    /// Gaps that the event loop has not recorded yet.
    gaps: Vec<Span>,
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
            gaps: Vec::new(),
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
        self.gaps.drain(..)
    }
}

impl EventSummary {
    fn add(&mut self, part: EventPart, now: Instant, gaps: &mut Vec<Span>) {
        if part == EventPart::EndMark {
            self.has_end_mark = true;
            return;
        }
        self.count += 1;
        self.first.get_or_insert(now);
        if let Some(last) = self.last.replace(now) {
            gaps.push(now.saturating_since(last));
        }
    }
}

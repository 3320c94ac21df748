//! The measurements of a loop: what was sent, bytes, and the report of each second.

use std::sync::mpsc::{Receiver, Sender};

use posthaste_units::Instant;

use crate::exchange::HttpExchange;
use crate::outcome::Outcome;
use crate::plan::source::Due;
use crate::plan::{MeasuredWindow, Plan};
use crate::reply::events::{EventEnd, EventSummary};
use crate::tally::LoadTally;
use crate::tally::seconds::{LoopSecond, SECOND, whole_seconds};

/// The measurements of an event loop.
pub(in super::super) struct LoopRecording {
    window: MeasuredWindow,
    /// True if the plan expects events in the replies.
    expects_events: bool,
    /// Index among the loops of this process.
    index: usize,
    /// Measurements since the last report.
    pub(in super::super) tally: Box<LoadTally>,
    /// Takes the tally of each second.
    seconds: Sender<LoopSecond>,
    /// Empty tallies, so that a second costs no allocation.
    empty: Receiver<Box<LoadTally>>,
    pub(in super::super) next_second: Instant,
    /// Bytes sent and received that are recorded for the measured time, or do not belong to it.
    bytes_recorded: [u64; 2],
}

impl LoopRecording {
    pub(super) fn new(
        plan: &Plan,
        index: usize,
        seconds: Sender<LoopSecond>,
        empty: Receiver<Box<LoadTally>>,
    ) -> Self {
        Self {
            window: plan.window(),
            expects_events: plan.events.is_some(),
            index,
            tally: Box::new(LoadTally::for_plan(plan)),
            seconds,
            empty,
            next_second: Instant::ORIGIN + SECOND,
            bytes_recorded: [0; 2],
        }
    }

    /// True if a request was due in the measured time.
    pub(in super::super) fn is_recorded(&self, exchange: &HttpExchange) -> bool {
        exchange.due.at >= self.window.start
    }

    /// Counts a request that is begun.
    pub(super) fn record_begun(&mut self, exchange: &HttpExchange) {
        if self.is_recorded(exchange) {
            self.tally.intended += 1;
        } else {
            self.tally.warm_up += 1;
        }
    }

    /// Records that an attempt, or its SYN, was sent as soon as it was begun.
    pub(in super::super) fn record_sent(&mut self, exchange: &HttpExchange) {
        self.record_lateness(exchange);
        self.count_sent(exchange);
    }

    /// Records how late an attempt was begun.
    pub(in super::super) fn record_lateness(&mut self, exchange: &HttpExchange) {
        let (attempt, begun) = (exchange.attempt, exchange.moments.begun);
        debug_assert!(
            attempt.due <= begun,
            "an attempt was begun before it was due"
        );
        if self.is_recorded(exchange) {
            let lateness = begun.saturating_since(attempt.due);
            match attempt.number {
                1 => self.tally.sent_late(lateness),
                _ => self.tally.retry_sent_late(lateness),
            }
        }
    }

    /// Counts an attempt that was sent.
    pub(in super::super) fn count_sent(&mut self, exchange: &HttpExchange) {
        let in_time = self.window.contains(exchange.moments.sent);
        self.tally.attempts.sent += u64::from(in_time);
        self.tally.sent += u64::from(in_time && exchange.attempt.number == 1);
    }

    /// Counts the statuses of a complete reply.
    pub(super) fn record_status(&mut self, exchange: &HttpExchange) {
        if !self.is_recorded(exchange) {
            return;
        }
        if let Some(status) = exchange.status {
            *self.tally.statuses.entry(status).or_default() += 1;
        }
        if let Some(code) = exchange.code {
            self.tally.grpc.count(code);
        }
    }

    /// Records the events of a request's reply, if the plan expects events.
    pub(super) fn record_events(
        &mut self,
        due: &Due,
        outcome: Outcome,
        done: Instant,
        events: EventSummary,
    ) {
        let start = self.window.start;
        if self.expects_events && due.at >= start {
            self.tally.events.ended(&EventEnd {
                outcome,
                events,
                due: due.at,
                done,
                start,
            });
        }
    }

    /// Records the bytes since the last call, which belong to the measured time if `now` does.
    pub(in super::super) fn record_bytes(&mut self, now: Instant) {
        let bytes = [self.tally.bytes_sent, self.tally.bytes_received];
        let before = std::mem::replace(&mut self.bytes_recorded, bytes);
        if self.window.contains(now) {
            let in_time = &mut self.tally.bytes_in_time;
            in_time[0] += bytes[0] - before[0];
            in_time[1] += bytes[1] - before[1];
        }
    }

    /// Passes the tally on, once a second, and continues with an empty one. If none has come back, the next second is
    /// added to this one.
    pub(in super::super) fn report_second(&mut self, now: Instant) {
        debug_assert!(now >= self.next_second, "the second has not ended");
        let second = whole_seconds(now);
        self.next_second = Instant::ORIGIN + SECOND * (second + 1);
        if let Ok(empty) = self.empty.try_recv() {
            self.record_bytes(now);
            self.bytes_recorded = [0; 2];
            let report = LoopSecond {
                index: self.index,
                second,
                tally: std::mem::replace(&mut self.tally, empty),
                is_last: false,
            };
            let _ = self.seconds.send(report);
        }
    }

    /// Passes the last tally on.
    pub(in super::super) fn report_end(mut self, now: Instant) {
        self.record_bytes(now);
        let end = LoopSecond {
            index: self.index,
            second: whole_seconds(self.next_second),
            tally: self.tally,
            is_last: true,
        };
        // The receiver is there until the loop has ended, unless its thread has panicked.
        let _ = self.seconds.send(end);
    }
}

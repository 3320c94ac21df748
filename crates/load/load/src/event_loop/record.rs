//! The records of a loop: ends of requests, bytes, and the report of each second.

use posthaste_units::{Instant, Span};

use super::EventLoop;
use crate::connection::ConnectionState;
use crate::events::{EventEnd, EventSummary};
use crate::exchange::HttpExchange;
use crate::outcome::Outcome;
use crate::seconds::{LoopSecond, SECOND, whole_seconds};
use crate::source::Due;
use crate::tally::Ending;

/// Wait of a client after a request that could not be sent.
const AFTER_FAILURE: Span = Span::from_millis(10);

impl EventLoop<'_> {
    /// Records that an attempt, or its SYN, was sent as soon as it was begun.
    pub(super) fn record_sent(&mut self, exchange: &HttpExchange) {
        self.record_lateness(exchange);
        self.count_sent(exchange);
    }

    /// Records how late an attempt was begun.
    pub(super) fn record_lateness(&mut self, exchange: &HttpExchange) {
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
    pub(super) fn count_sent(&mut self, exchange: &HttpExchange) {
        let in_time = self.shared.window.contains(exchange.moments.sent);
        self.tally.attempts.sent += u64::from(in_time);
        self.tally.sent += u64::from(in_time && exchange.attempt.number == 1);
    }

    /// Records the end of an attempt. Plans the next one if the client retries, otherwise ends the request.
    pub(super) fn record_end(&mut self, exchange: &HttpExchange, outcome: Outcome, done: Instant) {
        let start = self.shared.window.start;
        self.tally
            .attempt_ended(outcome, &exchange.moments, done, start);
        if let Some(recorder) = self.shared.recorder {
            recorder.record(exchange, outcome, done);
        }
        if !self.plan_retry(exchange, outcome, done) {
            let attempts = exchange.attempt.number;
            let (due, request) = (&exchange.due, exchange.request);
            self.end_request(due, request, attempts, (outcome, done), exchange.events);
        }
    }

    /// Records the end of a request after a number of attempts, and lets the client continue.
    pub(super) fn end_request(
        &mut self,
        due: &Due,
        request: usize,
        attempts: u32,
        (outcome, done): (Outcome, Instant),
        events: EventSummary,
    ) {
        debug_assert!(self.in_flight > 0, "a request ends twice");
        self.in_flight -= 1;
        self.record_events(due, outcome, done, events);
        self.tally.ended(&Ending {
            outcome,
            attempts,
            step: due.step,
            request,
            intended: due.at,
            done,
            window: self.shared.window,
        });
        let think = self.shared.mix.requests[request].think;
        let pause = match outcome {
            outcome if outcome.is_complete() => think,
            _ => think.max(AFTER_FAILURE),
        };
        self.source.ended(due.client, done, pause);
    }

    /// Records the events of a request's reply, if the plan expects events.
    pub(super) fn record_events(
        &mut self,
        due: &Due,
        outcome: Outcome,
        done: Instant,
        events: EventSummary,
    ) {
        let start = self.shared.window.start;
        if self.shared.plan.events.is_some() && due.at >= start {
            self.tally.events.ended(&EventEnd {
                outcome,
                events,
                due: due.at,
                done,
                start,
            });
        }
    }

    /// True if a request was due in the measured time.
    pub(super) fn is_recorded(&self, exchange: &HttpExchange) -> bool {
        exchange.due.at >= self.shared.window.start
    }

    /// Records the bytes since the last call, which belong to the measured time if `now` does.
    pub(super) fn record_bytes(&mut self, now: Instant) {
        let bytes = [self.tally.bytes_sent, self.tally.bytes_received];
        let before = std::mem::replace(&mut self.bytes_recorded, bytes);
        if self.shared.window.contains(now) {
            let in_time = &mut self.tally.bytes_in_time;
            in_time[0] += bytes[0] - before[0];
            in_time[1] += bytes[1] - before[1];
        }
    }

    /// Passes the tally on, once a second, and continues with an empty one. If none has come back, the next second is
    /// added to this one.
    pub(super) fn report_second(&mut self, now: Instant) {
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
    pub(super) fn report_end(mut self) {
        let now = self.shared.clock.now();
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

    /// Counts unfinished requests when the run is stopped.
    pub(super) fn end_unfinished(&mut self) {
        let now = self.shared.clock.now();
        for exchange in self.exchanges.drain() {
            self.record_end(&exchange, Outcome::InFlight, now);
        }
        self.end_waiting_retries(now);
        for connection in self.connections.drain() {
            let is_counted = connection.state == ConnectionState::Closing;
            if let (Some(streams), false) = (&connection.streams, is_counted) {
                streams.client.add_counts(&mut self.tally.streams);
            }
            connection.abort(self.shared.clock.at(now));
        }
    }
}

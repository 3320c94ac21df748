//! The ends of attempts and of requests.

use posthaste_units::{Instant, Span};

use super::LoopRequests;
use crate::exchange::HttpExchange;
use crate::exchange::slots::ExchangeSlot;
use crate::outcome::Outcome;
use crate::plan::source::Due;
use crate::reply::events::EventSummary;
use crate::tally::Ending;

/// Wait of a client after a request that could not be sent.
const AFTER_FAILURE: Span = Span::from_millis(10);

impl LoopRequests<'_> {
    /// Ends an exchange without a complete reply.
    pub(in super::super) fn fail(
        &mut self,
        open: ExchangeSlot,
        outcome: Outcome,
        now: Instant,
        reason: impl FnOnce() -> String,
    ) {
        let exchange = self.exchanges.remove(open);
        self.recording
            .tally
            .explain(outcome, exchange.numbers(), reason);
        self.end_attempt(&exchange, outcome, now);
    }

    /// Records the end of an attempt. Plans the next one if the client retries, otherwise ends the request.
    pub(in super::super) fn end_attempt(
        &mut self,
        exchange: &HttpExchange,
        outcome: Outcome,
        done: Instant,
    ) {
        let start = self.shared.window.start;
        self.recording
            .tally
            .attempt_ended(outcome, &exchange.moments, done, start);
        if let Some(recorder) = self.shared.recorder {
            recorder.record(exchange, outcome, done);
        }
        if !self.arrivals.plan_retry(exchange, outcome, done) {
            let ending = self.ending(&exchange.due, exchange.request, outcome, done);
            let attempts = exchange.attempt.number;
            self.end_request(
                &exchange.due,
                Ending { attempts, ..ending },
                exchange.events,
            );
        }
    }

    /// The end of a request after one attempt.
    fn ending(&self, due: &Due, request: usize, outcome: Outcome, done: Instant) -> Ending {
        Ending {
            outcome,
            attempts: 1,
            step: due.step,
            request,
            intended: due.at,
            done,
            window: self.shared.window,
        }
    }

    /// Records the end of a request, and lets the client continue.
    fn end_request(&mut self, due: &Due, ending: Ending, events: EventSummary) {
        let (outcome, done) = (ending.outcome, ending.done);
        self.recording.record_events(due, outcome, done, events);
        self.recording.tally.ended(&ending);
        let think = self.shared.mix.requests[ending.request].think;
        let pause = match outcome {
            outcome if outcome.is_complete() => think,
            _ => think.max(AFTER_FAILURE),
        };
        self.arrivals.end(due.client, done, pause);
    }

    /// Counts unfinished requests when the run is stopped.
    pub(in super::super) fn end_unfinished(&mut self) {
        let now = self.shared.clock.now();
        for exchange in self.exchanges.drain() {
            self.end_attempt(&exchange, Outcome::InFlight, now);
        }
        for retry in self.arrivals.take_retries() {
            let ending = self.ending(&retry.due, retry.request, Outcome::InFlight, now);
            let attempts = retry.attempt.number - 1;
            self.end_request(
                &retry.due,
                Ending { attempts, ..ending },
                EventSummary::default(),
            );
        }
        assert_eq!(
            self.arrivals.in_flight(),
            0,
            "a request has not ended with its event loop: a bug"
        );
    }
}

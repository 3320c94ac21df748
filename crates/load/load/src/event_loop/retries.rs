//! The next attempt of a request that failed: planned at the end of one attempt, sent at the end of the back-off.

use posthaste_units::Instant;

use super::EventLoop;
use crate::events::EventSummary;
use crate::exchange::{Attempt, HttpExchange};
use crate::outcome::Outcome;
use crate::retry::WaitingRetry;

impl EventLoop<'_> {
    /// Plans the next attempt if the client retries after this end. Returns false if the request ends.
    pub(super) fn plan_retry(
        &mut self,
        exchange: &HttpExchange,
        outcome: Outcome,
        done: Instant,
    ) -> bool {
        let Some(policy) = &self.shared.plan.retries else {
            return false;
        };
        let Attempt { number, resent, .. } = exchange.attempt;
        let sendings = number - resent;
        if !policy.permits(sendings, outcome, exchange.status, exchange.code) {
            return false;
        }
        let (seed, request) = (self.shared.plan.seed, exchange.due.number);
        let attempt = Attempt {
            number: number + 1,
            due: done + policy.backoff.wait(seed, request, sendings),
            resent,
        };
        self.retries.push(WaitingRetry {
            due: exchange.due,
            request: exchange.request,
            attempt,
        });
        true
    }

    /// Takes the earliest retry that is due, unless a first attempt was due before it.
    pub(super) fn take_retry(&mut self, now: Instant) -> Option<WaitingRetry> {
        let first = self.source.next_due().unwrap_or(now);
        self.retries.take(now.min(first))
    }

    /// Sends the next attempt of a request. Sending ends with the plan: the remaining backlog is counted and not sent.
    pub(super) fn send_again(&mut self, retry: &WaitingRetry, now: Instant) {
        let exchange = self.exchange(retry.due, retry.request, retry.attempt);
        let sent = exchange.moments.sent;
        if self.is_overdue(retry.attempt.due, now) {
            self.tally.overdue += u64::from(self.is_recorded(&exchange));
            let reason = || "the plan had ended before the generator came to a retry".to_owned();
            let of = exchange.numbers();
            self.tally.explain(Outcome::Dropped, of, reason);
            self.record_end(&exchange, Outcome::Dropped, sent);
        } else {
            self.send(exchange);
        }
    }

    /// Ends the requests that wait for their next attempt when the run is stopped.
    pub(super) fn end_waiting_retries(&mut self, now: Instant) {
        for retry in self.retries.drain() {
            let made = retry.attempt.number - 1;
            let end = (Outcome::InFlight, now);
            let events = EventSummary::default();
            self.end_request(&retry.due, retry.request, made, end, events);
        }
    }
}

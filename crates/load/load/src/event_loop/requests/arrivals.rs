//! Requests and retries that will become due, and the number of those that have not ended.

use posthaste_units::{Instant, Span};

use super::retry_queue::{RetryQueue, WaitingRetry};
use crate::exchange::{Attempt, HttpExchange};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::plan::source::{Due, DueStretch, RequestSource};

/// The arrivals of an event loop.
pub(in super::super) struct LoopArrivals<'r> {
    plan: &'r Plan,
    source: RequestSource,
    retries: RetryQueue,
    /// Requests begun and not ended, those between two attempts included.
    in_flight: usize,
}

impl<'r> LoopArrivals<'r> {
    /// Creates the arrivals of the loop at this position in the run.
    pub(super) fn new(plan: &'r Plan, position: usize) -> Self {
        Self {
            plan,
            source: RequestSource::new(plan, position),
            retries: RetryQueue::default(),
            in_flight: 0,
        }
    }

    /// Due time of the next request or retry, if already known.
    pub(in super::super) fn next_due(&self) -> Option<Instant> {
        let dues = [self.source.next_due(), self.retries.next_due()];
        dues.into_iter().flatten().min()
    }

    /// Due time of the next request, if already known.
    pub(in super::super) fn next_request_due(&self) -> Option<Instant> {
        self.source.next_due()
    }

    /// True if no request is in flight, and none will become due.
    pub(in super::super) fn is_finished(&self) -> bool {
        self.in_flight == 0 && self.source.next_due().is_none()
    }

    /// Takes the earliest retry that is due, unless a first attempt was due before it.
    pub(in super::super) fn take_retry(&mut self, now: Instant) -> Option<WaitingRetry> {
        let first = self.source.next_due().unwrap_or(now);
        self.retries.take(now.min(first))
    }

    /// Takes the next request if it is due.
    pub(in super::super) fn take_request(&mut self, now: Instant) -> Option<Due> {
        self.source.take(now)
    }

    /// Takes the next request of a schedule if it was due by `over`.
    pub(super) fn take_unbegun(&mut self, over: Instant) -> Option<Due> {
        self.source.overdue(over)
    }

    /// Takes the requests after `due` until `end` that can be counted together with it.
    pub(super) fn extend(&mut self, due: Due, end: Instant, start: Instant) -> DueStretch {
        self.source.extend(due, end, start)
    }

    /// Counts a request that is begun.
    pub(super) const fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// Counts the end of a request. Its client continues after `pause`.
    pub(super) fn end(&mut self, client: u32, done: Instant, pause: Span) {
        debug_assert!(self.in_flight > 0, "a request ends twice");
        self.in_flight -= 1;
        self.source.ended(client, done, pause);
    }

    /// Plans the next attempt if the client retries after this end. Returns false if the request ends.
    pub(super) fn plan_retry(
        &mut self,
        exchange: &HttpExchange,
        outcome: Outcome,
        done: Instant,
    ) -> bool {
        let Some(policy) = &self.plan.retries else {
            return false;
        };
        let Attempt { number, resent, .. } = exchange.attempt;
        let sendings = number - resent;
        if !policy.permits(sendings, outcome, exchange.status, exchange.code) {
            return false;
        }
        let (seed, request) = (self.plan.seed, exchange.due.number);
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

    /// Takes the retries that wait, when the run is stopped.
    pub(super) fn take_retries(&mut self) -> impl Iterator<Item = WaitingRetry> + use<> {
        self.retries.drain()
    }

    /// Stops the source: no further request becomes due.
    pub(super) fn stop(&mut self) {
        self.source.stop();
    }

    /// Requests begun and not ended.
    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight
    }
}

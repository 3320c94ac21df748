//! The requests of an event loop, from their due times to their records.
//!
//! | module | part |
//! |---|---|
//! | `arrivals` | requests and retries that will become due (`retry_queue`) |
//! | `replies` | judges complete replies |
//! | `ends` | ends attempts and requests |
//! | `offers` | chooses an offer, if the client buys |
//! | `recording` | measurements, and the report of each second |
//!
//! Connections and streams belong to the parts that carry the exchanges.

mod arrivals;
mod ends;
mod offers;
mod recording;
mod replies;
mod retry_queue;

use std::sync::mpsc::{Receiver, Sender};

use posthaste_units::{Instant, Span};
use rand::RngExt as _;

use self::arrivals::LoopArrivals;
use self::recording::LoopRecording;
use self::retry_queue::WaitingRetry;
use super::shared::Shared;
use crate::buying::Buyer;
use crate::exchange::slots::ExchangeSlot;
use crate::exchange::{Attempt, Exchanges, HttpExchange};
use crate::outcome::Outcome;
use crate::plan::source::{Due, DueStretch};
use crate::reply::events::EventSummary;
use crate::tally::LoadTally;
use crate::tally::seconds::LoopSecond;

/// A request this late at the end of the plan is not sent. Sending ends at most this long after the plan.
const OVERDUE: Span = Span::from_millis(500);

/// The requests of an event loop.
pub(super) struct LoopRequests<'r> {
    shared: &'r Shared<'r>,
    pub(super) arrivals: LoopArrivals<'r>,
    pub(super) exchanges: Exchanges,
    pub(super) recording: LoopRecording,
    pub(super) buyer: Option<Buyer<'r>>,
}

impl<'r> LoopRequests<'r> {
    /// Creates the requests of the loop with this index among those of the process.
    pub(super) fn new(
        shared: &'r Shared<'r>,
        index: usize,
        seconds: Sender<LoopSecond>,
        empty: Receiver<Box<LoadTally>>,
    ) -> Self {
        let (plan, position) = (shared.plan, shared.share.first + index);
        Self {
            shared,
            arrivals: LoopArrivals::new(plan, position),
            exchanges: Exchanges::new(shared.budget.clone(), plan.events.clone(), plan.has_calls()),
            recording: LoopRecording::new(plan, index, seconds, empty),
            buyer: shared.offers.as_ref().map(|offers| {
                let mut phase = plan.seed.numbered("asks", position as u64).stream("phase");
                Buyer::new(&offers.catalogue, phase.random())
            }),
        }
    }

    /// Begins the first attempt of a request that is due. Returns `None` if sending has ended: the remaining backlog is
    /// counted and not sent.
    pub(super) fn begin_first(&mut self, due: Due, now: Instant) -> Option<HttpExchange> {
        if self.is_overdue(due.at, now) {
            let start = self.shared.window.start;
            let stretch = self.arrivals.extend(due, now - OVERDUE, start);
            self.skip(Outcome::Dropped, &stretch, now);
            return None;
        }
        let attempt = Attempt {
            number: 1,
            due: due.at,
            resent: 0,
        };
        let request = self.shared.mix.pick(due.number);
        let exchange = HttpExchange::new(due, request, attempt, self.shared.clock.now());
        self.arrivals.begin();
        self.recording.record_begun(&exchange);
        Some(exchange)
    }

    /// Begins the next attempt of a request. Returns `None` if sending has ended: the request ends.
    pub(super) fn begin_retry(
        &mut self,
        retry: &WaitingRetry,
        now: Instant,
    ) -> Option<HttpExchange> {
        let sent = self.shared.clock.now();
        let exchange = HttpExchange::new(retry.due, retry.request, retry.attempt, sent);
        if !self.is_overdue(retry.attempt.due, now) {
            return Some(exchange);
        }
        let is_recorded = self.recording.is_recorded(&exchange);
        let tally = &mut self.recording.tally;
        tally.overdue += u64::from(is_recorded);
        let reason = || "the plan had ended before the generator came to a retry".to_owned();
        tally.explain(Outcome::Dropped, exchange.numbers(), reason);
        self.end_attempt(&exchange, Outcome::Dropped, sent);
        None
    }

    /// Records that an exchange was sent, unless an address has refused it before.
    pub(super) fn record_first_sent(&mut self, open: ExchangeSlot) {
        let exchange = &self.exchanges[open].exchange;
        if exchange.refusals == 0 {
            self.recording.record_sent(exchange);
        }
    }

    /// Counts requests that became due before the run was stopped, even if this loop has not begun them.
    pub(super) fn skip_overdue(&mut self) {
        let over = self.recording.tally.over;
        while let Some(due) = self.arrivals.take_unbegun(over) {
            let start = self.shared.window.start;
            let stretch = self.arrivals.extend(due, over, start);
            self.skip(Outcome::InFlight, &stretch, over);
        }
        self.arrivals.stop();
    }

    /// True if sending has ended with the plan, and this due time is part of the remaining backlog.
    fn is_overdue(&self, due: Instant, now: Instant) -> bool {
        now > self.shared.window.end && now.since(due) > OVERDUE
    }

    /// Counts requests that are due and not begun.
    fn skip(&mut self, outcome: Outcome, stretch: &DueStretch, now: Instant) {
        let due = &stretch.first;
        let request = self.shared.mix.pick(due.number);
        let tally = &mut self.recording.tally;
        tally.not_begun(outcome, stretch, request, self.shared.window, now);
        if outcome == Outcome::Dropped {
            let reason = || "the plan had ended before the generator came to it".to_owned();
            tally.explain(outcome, (due.number, 1), reason);
        }
        self.recording
            .record_events(due, outcome, now, EventSummary::default());
    }
}

//! Requests that become due: counted, then sent on an idle connection or on a new one.

use posthaste_units::{Instant, Span};

use super::EventLoop;
use crate::connection::{ConnectionState, HttpExchange};
use crate::outcome::Outcome;
use crate::source::Due;
use crate::tally::Moments;

/// Requests begun before replies are read again.
const BURST: usize = 32;
/// A request this late at the end of the plan is not sent. Sending ends at most this long after the plan.
const OVERDUE: Span = Span::from_millis(500);

impl EventLoop<'_> {
    /// Sends the requests that are due, at most a burst of them.
    pub(super) fn send_due(&mut self, now: Instant) {
        for _ in 0..BURST {
            let Some(due) = self.source.take(now) else {
                return;
            };
            // Sending ends with the plan. The remaining backlog is counted and not sent.
            if now > self.shared.window.1 && now.since(due.at) > OVERDUE {
                self.skip(Outcome::Dropped, &due, now);
            } else {
                self.send(due);
            }
        }
    }

    /// Counts requests that became due before the run was stopped, even if this loop has not begun them.
    pub(super) fn skip_overdue(&mut self) {
        while let Some(due) = self.source.overdue(self.tally.over) {
            self.skip(Outcome::InFlight, &due, self.tally.over);
        }
        self.source.stop();
    }

    /// Counts a request that is due and not begun.
    fn skip(&mut self, outcome: Outcome, due: &Due, now: Instant) {
        let request = self.shared.mix.pick(due.number);
        let times = (self.shared.window.0, now);
        self.tally.not_begun(outcome, due, request, times);
        if outcome == Outcome::Dropped {
            let reason = || "the plan had ended before the generator came to it".to_owned();
            self.tally.explain(outcome, reason);
        }
    }

    /// Counts a request that is due.
    fn count_due(&mut self, due: Due) -> HttpExchange {
        let request = self.shared.mix.pick(due.number);
        let sent = self.shared.clock.now();
        let moments = Moments {
            intended: due.at,
            sent,
            written: sent,
            ..Moments::default()
        };
        let exchange = HttpExchange {
            due,
            request,
            moments,
            quoted: false,
        };
        self.in_flight += 1;
        if self.is_recorded(&exchange) {
            self.tally.intended += 1;
            self.tally.tick.intended += 1;
        } else {
            self.tally.warm_up += 1;
        }
        exchange
    }

    /// Sends a request on an idle connection or on a new one.
    fn send(&mut self, due: Due) {
        let exchange = self.count_due(due);
        let (request, sent) = (exchange.request, exchange.moments.sent);
        if !self.choose_offer(&exchange) {
            return;
        }
        let origin = self.shared.mix.requests[request].origin;
        if let Some(slot) = self.idle[origin].pop() {
            self.record_sent(&exchange);
            let index = slot as usize;
            let connection = &mut self.connections[index];
            debug_assert!(
                connection.state == ConnectionState::Idle && connection.exchange.is_none(),
                "a busy connection is in the pool"
            );
            connection.exchange = Some(exchange);
            self.replying.push(slot, sent + self.shared.plan.timeout);
            self.write_request(slot);
        } else if self.connections.len() >= self.shared.limit && !self.evict_idle() {
            self.record_end(&exchange, Outcome::Dropped, sent);
        } else {
            self.connect(origin, exchange);
        }
    }

    /// Closes an idle connection to another origin: the oldest of the first origin that has one.
    fn evict_idle(&mut self) -> bool {
        let mut idle = self.idle.iter_mut().filter(|idle| !idle.is_empty());
        let Some(slot) = idle.next().map(|idle| idle.remove(0)) else {
            return false;
        };
        self.remove(slot);
        true
    }
}

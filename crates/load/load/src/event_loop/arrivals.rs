//! Requests that become due: counted, then sent on an idle connection or on a new one. Retries that are due take the
//! same way.

use posthaste_units::{Instant, Span};

use super::EventLoop;
use crate::connection::ConnectionState;
use crate::events::EventSummary;
use crate::exchange::{Attempt, HttpExchange};
use crate::outcome::Outcome;
use crate::phases::Moments;
use crate::protocol::Protocol;
use crate::slots::Slot as _;
use crate::source::{Due, DueStretch};

/// A loop that is this late for the requests of a second reports the second without them.
const BEHIND: Span = Span::from_millis(100);
/// Requests begun before replies are read again.
const BURST: usize = 32;
/// A request this late at the end of the plan is not sent. Sending ends at most this long after the plan.
const OVERDUE: Span = Span::from_millis(500);

impl EventLoop<'_> {
    /// Sends the requests and retries that are due, at most two bursts of them, and reports the second that has ended.
    /// Seconds are intervals `[start, end)`: a request due at the end of one is counted in the next.
    pub(super) fn begin_due(&mut self, now: Instant) {
        let end = self.next_second;
        if now >= end {
            self.send_due(end - Span::from_nanos(1));
            let is_counted = self.source.next_due().is_none_or(|due| due >= end);
            if !is_counted && now < end + BEHIND {
                return;
            }
            self.report_second(now);
        }
        self.send_due(now);
    }

    /// Sends the requests and retries that are due at `now`, at most a burst of them.
    fn send_due(&mut self, now: Instant) {
        for _ in 0..BURST {
            if let Some(retry) = self.take_retry(now) {
                self.send_again(&retry, now);
                continue;
            }
            let Some(due) = self.source.take(now) else {
                return;
            };
            if self.is_overdue(due.at, now) {
                let stretch = self
                    .source
                    .extend(due, now - OVERDUE, self.shared.window.start);
                self.skip(Outcome::Dropped, &stretch, now);
            } else {
                self.send_first(due);
            }
        }
    }

    /// True if sending has ended with the plan, and this due time is part of the remaining backlog.
    pub(super) fn is_overdue(&self, due: Instant, now: Instant) -> bool {
        now > self.shared.window.end && now.since(due) > OVERDUE
    }

    /// Counts requests that became due before the run was stopped, even if this loop has not begun them.
    pub(super) fn skip_overdue(&mut self) {
        let over = self.tally.over;
        while let Some(due) = self.source.overdue(over) {
            let stretch = self.source.extend(due, over, self.shared.window.start);
            self.skip(Outcome::InFlight, &stretch, over);
        }
        self.source.stop();
    }

    /// Counts requests that are due and not begun.
    fn skip(&mut self, outcome: Outcome, stretch: &DueStretch, now: Instant) {
        let due = &stretch.first;
        let request = self.shared.mix.pick(due.number);
        self.tally
            .not_begun(outcome, stretch, request, self.shared.window, now);
        self.record_events(due, outcome, now, EventSummary::default());
        if outcome == Outcome::Dropped {
            let reason = || "the plan had ended before the generator came to it".to_owned();
            self.tally.explain(outcome, (due.number, 1), reason);
        }
    }

    /// Counts a request that is due, and sends its first attempt.
    fn send_first(&mut self, due: Due) {
        let attempt = Attempt {
            number: 1,
            due: due.at,
            resent: 0,
        };
        let request = self.shared.mix.pick(due.number);
        let exchange = self.exchange(due, request, attempt);
        self.in_flight += 1;
        if self.is_recorded(&exchange) {
            self.tally.intended += 1;
        } else {
            self.tally.warm_up += 1;
        }
        self.send(exchange);
    }

    /// Creates the exchange of an attempt that is sent now.
    pub(super) fn exchange(&self, due: Due, request: usize, attempt: Attempt) -> HttpExchange {
        let sent = self.shared.clock.now();
        let moments = Moments {
            intended: due.at,
            begun: sent,
            sent,
            written: sent,
            ..Moments::default()
        };
        HttpExchange {
            due,
            request,
            attempt,
            status: None,
            code: None,
            moments,
            quoted: false,
            refusals: 0,
            is_resent: false,
            events: EventSummary::default(),
        }
    }

    /// Sends a request by the protocol of the plan.
    pub(super) fn send(&mut self, exchange: HttpExchange) {
        match self.shared.plan.protocol {
            Protocol::Http1 => self.send_alone(exchange),
            Protocol::Http2(_) | Protocol::Http3 { .. } => self.send_on_stream(exchange),
        }
    }

    /// Sends a request on an idle connection or on a new one.
    fn send_alone(&mut self, exchange: HttpExchange) {
        let (request, sent) = (exchange.request, exchange.moments.sent);
        if !self.choose_offer(&exchange) {
            return;
        }
        let origin = self.shared.mix.requests[request].origin;
        if let Some(slot) = self.idle[origin].pop() {
            self.record_sent(&exchange);
            let connection = &mut self.connections[slot.index()];
            debug_assert!(
                connection.state == ConnectionState::Idle && connection.exchange.is_none(),
                "a busy connection is in the pool"
            );
            connection.is_reused = true;
            let open = self.exchanges.insert(exchange, Some(slot));
            connection.exchange = Some(open);
            self.replying.push(open, sent + self.shared.plan.timeout);
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

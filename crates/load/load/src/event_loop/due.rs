//! The sending of requests and retries that are due.

use posthaste_units::{Instant, Span};

use super::EventLoop;
use crate::exchange::HttpExchange;
use crate::plan::protocol::Protocol;

/// A loop that is this late for the requests of a second reports the second without them.
const BEHIND: Span = Span::from_millis(100);
/// Requests begun before replies are read again.
const BURST: usize = 32;

impl EventLoop<'_> {
    /// Sends the requests and retries that are due, at most two bursts of them, and reports the second that has ended.
    /// Seconds are intervals `[start, end)`: a request due at the end of one is counted in the next.
    pub(super) fn begin_due(&mut self, now: Instant) {
        let end = self.requests.recording.next_second;
        if now >= end {
            self.send_due(end - Span::from_nanos(1));
            let next = self.requests.arrivals.next_request_due();
            let is_counted = next.is_none_or(|due| due >= end);
            if !is_counted && now < end + BEHIND {
                return;
            }
            self.requests.recording.report_second(now);
        }
        self.send_due(now);
    }

    /// Sends the requests and retries that are due at `now`, at most a burst of them.
    fn send_due(&mut self, now: Instant) {
        for _ in 0..BURST {
            let exchange = if let Some(retry) = self.requests.arrivals.take_retry(now) {
                self.requests.begin_retry(&retry, now)
            } else if let Some(due) = self.requests.arrivals.take_request(now) {
                self.requests.begin_first(due, now)
            } else {
                return;
            };
            if let Some(exchange) = exchange {
                self.send(exchange);
            }
        }
    }

    /// Sends a request by the protocol of the plan.
    fn send(&mut self, exchange: HttpExchange) {
        match self.shared.plan.protocol {
            Protocol::Http1 => self.http1().send(exchange),
            Protocol::Http2(_) | Protocol::Http3 { .. } => self.streams().send(exchange),
        }
    }
}

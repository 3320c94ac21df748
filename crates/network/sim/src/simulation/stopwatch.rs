//! Detection of the moments of a [`ResponseClock`] in TCP: the delivery of the first SYN-ACK and of all bytes, and the
//! arrival of the first bytes at a link.

use posthaste_link::Direction;
use posthaste_tcp::{Endpoint, Segment, unwrap};
use posthaste_units::{Instant, ResponseTime};

use crate::simulation::response_clock::ResponseClock;
use crate::{SimulatedExchange, SimulatedService};

/// Measures the response times of one connection.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    clock: ResponseClock,
    /// Bytes of the exchanges before this one, up and down.
    before: [u64; 2],
}

impl Stopwatch {
    /// Starts the measurement of a connection.
    pub(crate) fn start(&mut self, now: Instant) {
        self.clock.start(now);
        self.before = [0; 2];
    }

    /// Response time of each completed exchange, in order.
    pub(crate) fn responses(&self) -> &[ResponseTime] {
        self.clock.responses()
    }

    /// Records a segment of `sender` that comes to its link.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &Segment,
        sender: &Endpoint,
    ) {
        if segment.len == 0 || self.clock.has_begun(direction) {
            return;
        }
        let before = self.before[direction as usize];
        let end = segment.seq.wrapping_add(segment.len);
        // Offset 1 is the first byte.
        if unwrap(sender.isn(), end, before).is_some_and(|end| end > before + 1) {
            self.clock.first_byte(now, direction);
        }
    }

    /// Records a segment that was delivered to `receiver`, after the receiver has processed it.
    #[inline(always)]
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &Segment,
        receiver: &Endpoint,
        service: &SimulatedService,
    ) {
        let Some(exchange) = service.exchanges.get(self.responses().len()) else {
            return;
        };
        let [up, down] = self.before;
        if direction == Direction::Up {
            if receiver.received() >= up + exchange.request {
                self.clock.request_delivered(now);
            }
            return;
        }
        if segment.syn {
            self.clock.connected(now);
        }
        if receiver.received() >= down + exchange.reply {
            self.lap(now, exchange);
        }
    }

    /// Completes an exchange after the delivery of the whole reply.
    fn lap(&mut self, now: Instant, exchange: &SimulatedExchange) {
        self.clock.reply_delivered(now);
        self.before[Direction::Up as usize] += exchange.request;
        self.before[Direction::Down as usize] += exchange.reply;
    }
}

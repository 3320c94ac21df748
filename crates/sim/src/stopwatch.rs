//! Measurement of the parts of a [`ResponseTime`]: from the delivery of the first SYN-ACK and of all bytes, and from
//! the arrival of the first bytes at a link.

use posthaste_link::Direction;
use posthaste_tcp::{Endpoint, Segment, unwrap};
use posthaste_units::{Instant, ResponseTime};

use crate::SimulatedService;

/// Measures the response times of one connection.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    began: Instant,
    connected: Option<Instant>,
    /// Times when the first byte of the request and of the reply came to the link.
    first: [Option<Instant>; 2],
    /// Time when the whole request had been delivered.
    received: Option<Instant>,
    /// Bytes of the exchanges before this one, up and down.
    before: [u64; 2],
    pub(crate) responses: Vec<ResponseTime>,
}

impl Stopwatch {
    /// Starts the measurement of a connection.
    pub(crate) fn start(&mut self, now: Instant) {
        let mut responses = std::mem::take(&mut self.responses);
        responses.clear();
        *self = Self {
            began: now,
            responses,
            ..Self::default()
        };
    }

    /// Records a segment of `sender` that comes to its link.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &Segment,
        sender: &Endpoint,
    ) {
        let way = direction as usize;
        if segment.len == 0 || self.first[way].is_some() {
            return;
        }
        let before = self.before[way];
        let end = segment.seq.wrapping_add(segment.len);
        // Offset 1 is the first byte.
        if unwrap(sender.isn(), end, before).is_some_and(|end| end > before + 1) {
            self.first[way] = Some(now);
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
        let Some(exchange) = service.exchanges.get(self.responses.len()) else {
            return;
        };
        let [up, down] = self.before;
        if direction == Direction::Up {
            if self.received.is_none() && receiver.received() >= up + exchange.request {
                self.received = Some(now);
            }
            return;
        }
        if segment.syn {
            self.connected.get_or_insert(now);
        }
        if receiver.received() >= down + exchange.reply {
            self.lap(now);
            self.before = [up + exchange.request, down + exchange.reply];
        }
    }

    /// Completes an exchange after the delivery of the whole reply.
    fn lap(&mut self, now: Instant) {
        let [asked, answered] = self.first.map(|first| first.unwrap_or(now));
        let connected = self.connected.unwrap_or(asked).min(asked);
        // A later exchange begins with its first byte.
        let began = match self.responses.is_empty() {
            true => self.began,
            false => asked,
        };
        let connected = connected.max(began);
        debug_assert!(began <= now, "a reply arrives before its exchange begins");
        let received = self.received.unwrap_or(answered).min(answered);
        self.responses.push(ResponseTime {
            t_conn: connected.since(began),
            t_client: asked.since(connected),
            t_req: received.since(asked),
            t_proc: answered.since(received),
            t_resp: now.since(answered),
        });
        debug_assert_eq!(
            self.responses.last().map(ResponseTime::total),
            Some(now.since(began)),
            "the parts of a response time do not add up"
        );
        self.first = [None; 2];
        self.received = None;
    }
}

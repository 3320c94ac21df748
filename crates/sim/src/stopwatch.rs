//! The parts of a response time, by [the house's definition](ResponseTime): when the first SYN-ACK
//! and every byte have been sent on, and when first bytes come to a link.

use posthaste_link::Direction;
use posthaste_tcp::{Endpoint, Segment, unwrap};
use posthaste_units::{Instant, ResponseTime};

use crate::Service;

/// Reads the response times of one connection as it goes on.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    began: Instant,
    connected: Option<Instant>,
    /// When the first byte of the request, and of the reply, came to the link.
    first: [Option<Instant>; 2],
    /// When the whole request had been delivered.
    received: Option<Instant>,
    /// Bytes of the exchanges before this one, up and down.
    before: [u64; 2],
    pub(crate) responses: Vec<ResponseTime>,
}

impl Stopwatch {
    /// A connection begins.
    pub(crate) fn start(&mut self, now: Instant) {
        let mut responses = std::mem::take(&mut self.responses);
        responses.clear();
        *self = Self {
            began: now,
            responses,
            ..Self::default()
        };
    }

    /// A segment of `sender` comes to its link.
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
        // Place 1 is the first byte.
        if unwrap(sender.isn(), end, before).is_some_and(|end| end > before + 1) {
            self.first[way] = Some(now);
        }
    }

    /// A segment was delivered to `receiver`, which has taken it.
    #[inline(always)]
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &Segment,
        receiver: &Endpoint,
        service: &Service,
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

    /// The whole reply has been delivered.
    fn lap(&mut self, now: Instant) {
        let [asked, answered] = self.first.map(|first| first.unwrap_or(now));
        let connected = self.connected.unwrap_or(asked).min(asked);
        // A later exchange begins with its first byte.
        let began = match self.responses.is_empty() {
            true => self.began,
            false => asked,
        };
        let connected = connected.max(began);
        let received = self.received.unwrap_or(answered).min(answered);
        self.responses.push(ResponseTime {
            t_conn: connected.since(began),
            t_client: asked.since(connected),
            t_req: received.since(asked),
            t_proc: answered.since(received),
            t_resp: now.since(answered),
        });
        self.first = [None; 2];
        self.received = None;
    }
}

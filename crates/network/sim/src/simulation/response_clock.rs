//! Clock of the response times of one connection: the moments that end the parts of a [`ResponseTime`].
//!
//! The simulators of all transports share it. They detect the moments in their own packets.

use posthaste_link::Direction;
use posthaste_units::{Instant, ResponseTime};

/// Measures the response times of the exchanges of one connection, one after the other.
///
/// Start it with [`start`](Self::start). Each other call reports a moment; only the first report of a moment counts.
/// [`reply_delivered`](Self::reply_delivered) completes an exchange and begins the next one.
#[derive(Debug, Default)]
pub struct ResponseClock {
    began: Instant,
    connected: Option<Instant>,
    /// Times when the first byte of the request and of the reply came to the link.
    first: [Option<Instant>; 2],
    /// Time when the whole request had been delivered.
    received: Option<Instant>,
    responses: Vec<ResponseTime>,
}

impl ResponseClock {
    /// Starts the measurement of a connection.
    pub fn start(&mut self, now: Instant) {
        let mut responses = std::mem::take(&mut self.responses);
        responses.clear();
        *self = Self {
            began: now,
            responses,
            ..Self::default()
        };
    }

    /// The client can send its request.
    pub fn connected(&mut self, now: Instant) {
        self.connected.get_or_insert(now);
    }

    /// The first byte of the request (up) or of the reply (down) came to its link.
    pub fn first_byte(&mut self, now: Instant, direction: Direction) {
        self.first[direction as usize].get_or_insert(now);
    }

    /// True if the first byte of this direction came to its link.
    pub fn has_begun(&self, direction: Direction) -> bool {
        self.first[direction as usize].is_some()
    }

    /// The whole request was delivered.
    pub fn request_delivered(&mut self, now: Instant) {
        self.received.get_or_insert(now);
    }

    /// The whole reply was delivered.
    pub fn reply_delivered(&mut self, now: Instant) {
        let [requested, answered] = self.first.map(|first| first.unwrap_or(now));
        let connected = self.connected.unwrap_or(requested).min(requested);
        // A later exchange begins with its first byte.
        let began = if self.responses.is_empty() {
            self.began
        } else {
            requested
        };
        let connected = connected.max(began);
        debug_assert!(began <= now, "a reply arrives before its exchange begins");
        let received = self.received.unwrap_or(answered).min(answered);
        self.responses.push(ResponseTime {
            t_conn: connected.since(began),
            t_client: requested.since(connected),
            t_req: received.since(requested),
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

    /// Response time of each completed exchange, in order.
    pub fn responses(&self) -> &[ResponseTime] {
        &self.responses
    }
}

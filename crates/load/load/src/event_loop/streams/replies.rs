//! The replies in the frames of a connection.

use posthaste_http::streams::{ConnectionEvent, EventSink, StreamEnd};
use posthaste_units::Instant;

use super::queues::StreamQueues;
use crate::exchange::Exchanges;
use crate::exchange::slots::ExchangeSlot;
use crate::reply::events::EventTally;
use crate::tally::LoadTally;

/// Writes replies to their exchanges, and collects the ends of streams.
pub(super) struct ReplyWriter<'w> {
    exchanges: &'w mut Exchanges,
    ended: &'w mut Vec<(ExchangeSlot, StreamEnd)>,
    given_up: &'w mut Vec<ExchangeSlot>,
    is_confirmed: &'w mut bool,
    events: &'w mut EventTally,
    /// Beginning of the measured time.
    start: Instant,
    now: Instant,
}

impl<'w> ReplyWriter<'w> {
    /// Creates the writer for one connection. Requests due from `start` on are measured.
    pub(super) fn new(
        exchanges: &'w mut Exchanges,
        queues: &'w mut StreamQueues,
        tally: &'w mut LoadTally,
        is_confirmed: &'w mut bool,
        start: Instant,
        now: Instant,
    ) -> Self {
        Self {
            exchanges,
            ended: &mut queues.ended,
            given_up: &mut queues.given_up,
            is_confirmed,
            events: &mut tally.events,
            start,
            now,
        }
    }

    fn begin(&mut self, token: u32) {
        let moments = &mut self.exchanges[ExchangeSlot::from_token(token)]
            .exchange
            .moments;
        moments.first_byte.get_or_insert(self.now);
    }
}

impl EventSink for ReplyWriter<'_> {
    fn interim(&mut self, token: u32, _status: u16) {
        self.begin(token);
    }

    fn head(&mut self, token: u32, status: u16) {
        self.begin(token);
        self.exchanges[ExchangeSlot::from_token(token)]
            .reply
            .begin(status);
    }

    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        self.exchanges[ExchangeSlot::from_token(token)]
            .reply
            .field(name, value);
    }

    fn body(&mut self, token: u32, bytes: &[u8]) {
        let slot = ExchangeSlot::from_token(token);
        let open = &mut self.exchanges[slot];
        if let Some(events) = open.reply.events() {
            events.arrive(self.now);
        }
        if open.reply.body(bytes).is_err() && !self.given_up.contains(&slot) {
            self.given_up.push(slot);
        }
        open.record_gaps(self.events, self.start);
    }

    fn trailer(&mut self, token: u32, name: &[u8], value: &[u8]) {
        self.exchanges[ExchangeSlot::from_token(token)]
            .reply
            .trailer(name, value);
    }

    fn end(&mut self, token: u32, end: StreamEnd) {
        let slot = ExchangeSlot::from_token(token);
        self.given_up.retain(|other| *other != slot);
        self.ended.push((slot, end));
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        if let ConnectionEvent::SettingsChanged | ConnectionEvent::Limit(_) = event {
            *self.is_confirmed = true;
        }
    }
}

//! Frames of a connection, and the replies in them.

use posthaste_http::streams::{ConnectionEvent, EventSink, StreamEnd};
use posthaste_units::Instant;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::super::EventLoop;
use super::StreamQueues;
use crate::connection::{StreamState, TURN};
use crate::events::EventTally;
use crate::exchange::Exchanges;
use crate::outcome::Outcome;
use crate::plan::MeasuredWindow;
use crate::slots::{ConnectionSlot, ExchangeSlot, Slot as _};
use crate::stream_client::StreamClient;
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
    /// `window` begins with the measured time.
    pub(super) fn new(
        exchanges: &'w mut Exchanges,
        queues: &'w mut StreamQueues,
        tally: &'w mut LoadTally,
        is_confirmed: &'w mut bool,
        window: MeasuredWindow,
        now: Instant,
    ) -> Self {
        Self {
            exchanges,
            ended: &mut queues.ended,
            given_up: &mut queues.given_up,
            is_confirmed,
            events: &mut tally.events,
            start: window.start,
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

impl EventLoop<'_> {
    /// Handles an epoll event of an established connection.
    pub(in super::super) fn handle_streams(
        &mut self,
        slot: ConnectionSlot,
        flags: EventFlags,
        gone: bool,
    ) {
        if flags.contains(EventFlags::OUT) {
            self.list(slot);
        }
        if flags.contains(EventFlags::IN) || gone {
            self.receive_frames(slot, gone);
        }
    }

    /// Continues reading a connection that was left so that others get a turn.
    pub(in super::super) fn receive_streams(&mut self, slot: ConnectionSlot, closing: bool) {
        if self.connections[slot.index()].is_quic() {
            self.receive_datagrams(slot);
        } else {
            self.receive_frames(slot, closing);
        }
    }

    /// Reads available bytes of HTTP/2, and handles what they end. `closing` states that the server has closed.
    pub(super) fn receive_frames(&mut self, slot: ConnectionSlot, closing: bool) {
        let mut taken = 0;
        loop {
            let connection = &mut self.connections[slot.index()];
            let length = match connection.read(&mut self.buffer) {
                Ok(0) | Err(Errno::IO) => return self.end_of_connection(slot),
                Ok(length) => length,
                Err(Errno::AGAIN) => break,
                Err(_) => return self.end_of_connection(slot),
            };
            self.tally.bytes_received += length as u64;
            taken += length;
            let is_secure = connection.is_secure();
            let StreamState {
                client: StreamClient::Http2(client),
                is_confirmed,
                ..
            } = connection.streams_mut()
            else {
                unreachable!("datagrams are not read as a stream of bytes")
            };
            let mut replies = ReplyWriter::new(
                &mut self.exchanges,
                &mut self.streams,
                &mut self.tally,
                is_confirmed,
                self.shared.window,
                self.shared.clock.now(),
            );
            let received = client.receive(&self.buffer[..length], &mut replies);
            self.end_streams(slot);
            if let Err(error) = received {
                let guilty = error.token.map(ExchangeSlot::from_token);
                return self.end_by_violation(slot, guilty, &error.to_string());
            }
            if length < self.buffer.len() && !closing && !is_secure {
                break;
            }
            if taken >= TURN {
                self.read_later(slot, closing);
                break;
            }
        }
        self.continue_connection(slot);
    }

    /// Sends answers and bodies after frames were received, and gives free streams to waiting requests.
    pub(super) fn continue_connection(&mut self, slot: ConnectionSlot) {
        if self.continue_bodies(slot) {
            self.list(slot);
        }
        let streams = self.connections[slot.index()].streams();
        let (queue, is_usable) = (streams.queue, streams.client.is_usable());
        let was_used = streams.client.opened() > 0;
        if !is_usable {
            self.leave_queue(slot, queue);
        }
        if !is_usable && !was_used {
            // Another connection would fare no better.
            self.fail_waiting(queue, Outcome::Rejected, "GOAWAY before the first stream");
        }
        self.fill(queue);
        self.close_if_unused(slot);
    }
}

//! Frames of a connection.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::Streams;
use super::replies::ReplyWriter;
use crate::exchange::connection::{StreamState, TURN};
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::exchange::stream_client::StreamClient;
use crate::outcome::Outcome;

impl Streams<'_, '_> {
    /// Handles an epoll event of an established connection.
    pub(in super::super) fn handle(&mut self, slot: ConnectionSlot, flags: EventFlags, gone: bool) {
        if flags.contains(EventFlags::OUT) {
            self.queues.list(&mut self.connections[slot]);
        }
        if flags.contains(EventFlags::IN) || gone {
            self.receive_frames(slot, gone);
        }
    }

    /// Continues reading a connection that was left so that others get a turn.
    pub(in super::super) fn receive(&mut self, slot: ConnectionSlot, closing: bool) {
        if self.connections[slot].is_quic() {
            self.receive_datagrams(slot);
        } else {
            self.receive_frames(slot, closing);
        }
    }

    /// Reads available bytes of HTTP/2, and handles what they end. `closing` states that the server has closed.
    pub(super) fn receive_frames(&mut self, slot: ConnectionSlot, closing: bool) {
        let mut taken = 0;
        loop {
            let connection = &mut self.connections[slot];
            let length = match connection.read(&mut self.buffers.input) {
                Ok(length) if length > 0 => length,
                Err(Errno::AGAIN) => break,
                Ok(_) | Err(_) => {
                    let reason = "the connection ended before the reply was complete";
                    return self.fail(slot, Outcome::Reset, || reason.to_owned());
                }
            };
            self.requests.recording.tally.bytes_received += length as u64;
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
                &mut self.requests.exchanges,
                self.queues,
                &mut self.requests.recording.tally,
                is_confirmed,
                self.shared.window.start,
                self.shared.clock.now(),
            );
            let received = client.receive(&self.buffers.input[..length], &mut replies);
            self.end_streams(slot);
            if let Err(error) = received {
                let guilty = error.token.map(ExchangeSlot::from_token);
                return self.end_by_violation(slot, guilty, &error.to_string());
            }
            if length < self.buffers.input.len() && !closing && !is_secure {
                break;
            }
            if taken >= TURN {
                self.connections.read_later(slot, closing);
                break;
            }
        }
        self.continue_connection(slot);
    }

    /// Sends answers and bodies after frames were received, and gives free streams to waiting requests.
    pub(super) fn continue_connection(&mut self, slot: ConnectionSlot) {
        if self.continue_bodies(slot) {
            self.queues.list(&mut self.connections[slot]);
        }
        let streams = self.connections[slot].streams();
        let (queue, is_usable) = (streams.queue, streams.client.is_usable());
        let was_used = streams.client.opened() > 0;
        if !is_usable {
            self.queues.leave(slot, queue);
        }
        if !is_usable && !was_used {
            // Another connection would fare no better.
            self.fail_waiting(queue, Outcome::Rejected, "GOAWAY before the first stream");
        }
        self.fill(queue);
        self.close_if_unused(slot);
    }
}

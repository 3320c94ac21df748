//! The ends of streams, and of requests that have none.

use posthaste_http::streams::{StreamEnd, StreamRejection};

use super::Streams;
use crate::exchange::OpenExchange;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::outcome::Outcome;
use crate::plan::protocol::WhenRejected;
use crate::transport::socket;

impl Streams<'_, '_> {
    /// Records the streams that have ended, in the order of their ends.
    pub(super) fn end_streams(&mut self, slot: ConnectionSlot) {
        let now = self.shared.clock.now();
        let mut ended = std::mem::take(&mut self.queues.ended);
        let mut rejected = Vec::new();
        for (open, end) in ended.drain(..) {
            match end {
                StreamEnd::Complete => self.requests.end_replied(open, now),
                StreamEnd::Reset(code) => {
                    let reason = || format!("the server reset the stream with {code}");
                    self.fail_exchange(open, Outcome::Reset, reason);
                }
                StreamEnd::Rejected(rejection) => rejected.push((open, rejection)),
                StreamEnd::Malformed { reason, .. } => {
                    self.fail_exchange(open, Outcome::ProtocolError, || reason.to_owned());
                }
            }
        }
        self.queues.ended = ended;
        // Each goes to the front of its queue, so the last one goes first.
        for (open, rejection) in rejected.into_iter().rev() {
            self.reject(open, rejection);
        }
        for open in std::mem::take(&mut self.queues.given_up) {
            self.reset_stream(slot, open);
            let reason = || crate::reply::NoMemory.to_string();
            self.fail_exchange(open, Outcome::MemoryLimit, reason);
        }
    }

    /// Sends a rejected request once more, if the plan says so, or ends it.
    fn reject(&mut self, open: ExchangeSlot, rejection: StreamRejection) {
        let entry = &mut self.requests.exchanges[open];
        let resend = self.queues.when_rejected() == WhenRejected::Resend;
        let reason = match rejection {
            StreamRejection::Refused => "the server refused the stream",
            StreamRejection::GoAway => "GOAWAY before the stream",
        };
        if resend && !entry.exchange.is_resent {
            entry.exchange.is_resent = true;
            self.requests.recording.tally.streams.resent += 1;
            self.resend(open, reason);
        } else {
            self.fail_exchange(open, Outcome::Rejected, || reason.to_owned());
        }
    }

    /// Ends an attempt that the server rejected without processing it, and puts the next one at the front of its queue.
    pub(super) fn resend(&mut self, open: ExchangeSlot, reason: &str) {
        let entry = &mut self.requests.exchanges[open];
        let ended = entry.exchange;
        entry.exchange.attempt.number += 1;
        entry.exchange.attempt.resent += 1;
        let moments = &mut entry.exchange.moments;
        (moments.first_byte, moments.has_stream) = (None, false);
        (entry.connection, entry.stream) = (None, None);
        entry.reply.clear();
        let (queue, id) = (entry.queue, entry.id);
        self.queues[queue].waiting.push_front(id);
        let (now, start) = (self.shared.clock.now(), self.shared.window.start);
        let tally = &mut self.requests.recording.tally;
        tally.explain(Outcome::Rejected, ended.numbers(), || reason.to_owned());
        tally.attempt_ended(Outcome::Rejected, &ended.moments, now, start);
    }

    /// Ends an exchange of HTTP/2 without a complete reply. Its stream has ended, or there is none.
    pub(super) fn fail_exchange(
        &mut self,
        open: ExchangeSlot,
        outcome: Outcome,
        reason: impl FnOnce() -> String,
    ) {
        let now = self.shared.clock.now();
        let moments = &self.requests.exchanges[open].exchange.moments;
        if !moments.has_stream {
            let wait = now.saturating_since(moments.begun);
            self.requests.recording.tally.streams.queued.add_wait(wait);
        }
        self.requests.fail(open, outcome, now, reason);
    }

    /// Ends the waiting requests of a queue.
    pub(super) fn fail_waiting(&mut self, queue: usize, outcome: Outcome, reason: &str) {
        let failed = &mut self.queues[queue];
        failed.refusals = 0;
        let waiting = std::mem::take(&mut failed.waiting);
        for id in waiting {
            if self.requests.exchanges.contains(id) {
                self.fail_exchange(id.slot, outcome, || reason.to_owned());
            }
        }
        self.queues.forget_single(queue);
    }

    /// Resets the stream of an exchange.
    pub(super) fn reset_stream(&mut self, slot: ConnectionSlot, open: ExchangeSlot) {
        let stream = self.requests.exchanges[open].stream;
        let stream = stream.expect("the exchange has a stream");
        let connection = &mut self.connections[slot];
        connection.streams_mut().client.cancel(stream.id);
        self.queues.list(connection);
    }

    /// Ends an exchange whose deadline has passed: on its stream, or waiting for one.
    pub(in super::super) fn expire(&mut self, open: ExchangeSlot) {
        let OpenExchange {
            connection, queue, ..
        } = self.requests.exchanges[open];
        let Some(slot) = connection else {
            let outcome = if self.queues[queue].connections.is_empty() {
                Outcome::ConnectAborted
            } else {
                Outcome::NoStream
            };
            self.fail_exchange(open, outcome, || outcome.meaning().to_owned());
            return self.queues.forget_single(queue);
        };
        let connection = &self.connections[slot];
        let is_connecting = connection.state == ConnectionState::Connecting;
        let streams = connection.streams();
        // A server that has sent its SETTINGS has accepted the connection.
        let is_phantom = !streams.is_confirmed && !socket::is_acknowledged(&connection.socket);
        let outcome = if is_connecting {
            // Early data of a connection that the server has not accepted.
            Outcome::ConnectAborted
        } else if is_phantom {
            Outcome::Unanswered
        } else {
            Outcome::TimedOut
        };
        self.reset_stream(slot, open);
        self.fail_exchange(open, outcome, || outcome.meaning().to_owned());
        self.continue_connection(slot);
    }
}

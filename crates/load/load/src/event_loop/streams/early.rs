//! Early data of HTTP/3: requests that leave with the first datagrams of a resumed connection.
//!
//! A connection with early data takes requests while it is being established; its connect timeout runs on. If the server
//! rejects the early data, QUIC forgets the streams. Their requests go back to the front of the queue and are sent again,
//! each as another attempt.

use super::super::EventLoop;
use crate::slots::{ConnectionSlot, ExchangeSlot, Slot as _};

impl EventLoop<'_> {
    /// Lets a new connection take the requests of its queue, if it has early data.
    pub(super) fn begin_early_data(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.connections[slot.index()];
        if !connection.quic().is_some_and(|quic| quic.is_early()) {
            return;
        }
        let queue = connection.streams().queue;
        let queue = &mut self.streams.queues[queue];
        debug_assert!(queue.opening == Some(slot), "two connections are opening");
        queue.opening = None;
        queue.connections.push(slot);
    }

    /// Ends the attempts of requests in early data that the server has rejected, and begins their next attempts.
    pub(super) fn resend_early_data(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.connections[slot.index()];
        let rejected = connection.quic().map(|quic| quic.take_rejected());
        let rejected = rejected.unwrap_or_default();
        if rejected.is_empty() {
            return;
        }
        connection.streams_mut().written.clear();
        for token in rejected.into_iter().rev() {
            let open = ExchangeSlot::from_token(token);
            self.tally.streams.early_data.sent_again += 1;
            self.resend(open, "early data, sent again after the handshake");
        }
    }
}

//! Early data of HTTP/3: requests that leave with the first datagrams of a resumed connection.
//!
//! A connection with early data takes requests while it is being established; its connect timeout runs on. If the server
//! rejects the early data, QUIC forgets the streams. Their requests go back to the front of the queue and are sent again,
//! each as another attempt.

use super::Streams;
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};

impl Streams<'_, '_> {
    /// Ends the attempts of requests in early data that the server has rejected, and begins their next attempts.
    pub(super) fn resend_early_data(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.connections[slot];
        let rejected = connection.quic().map(|quic| quic.take_rejected());
        let rejected = rejected.unwrap_or_default();
        if rejected.is_empty() {
            return;
        }
        connection.streams_mut().written.clear();
        for token in rejected.into_iter().rev() {
            let tally = &mut self.requests.recording.tally;
            tally.streams.early_data.sent_again += 1;
            let open = ExchangeSlot::from_token(token);
            self.resend(open, "early data, sent again after the handshake");
        }
    }
}

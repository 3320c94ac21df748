//! The request of a connection that is ready: written, as far as the kernel accepts it.

use rustix::io::Errno;

use super::Http1;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;

/// Result of sending a request.
pub(super) enum Transmitted {
    Yes,
    /// The kernel refuses. `AGAIN` means that the connection is not established yet.
    Refused(Errno),
    /// The template could not be rendered.
    Unwritten(String),
}

impl Http1<'_, '_> {
    /// Sends the request of a connection that is ready.
    pub(in super::super) fn write_request(&mut self, slot: ConnectionSlot) {
        match self.transmit(slot) {
            Transmitted::Yes if self.connections[slot].has_unsent() => {
                if let Err(errno) = self.connections.watch_writable(slot) {
                    self.fail(slot, Outcome::ClientFailed, || errno.to_string());
                }
            }
            Transmitted::Yes => {}
            Transmitted::Refused(errno) => self.fail_reset(slot, &errno.to_string()),
            Transmitted::Unwritten(reason) => self.fail(slot, Outcome::ClientFailed, || reason),
        }
    }

    /// Passes the request of a connection to the kernel.
    pub(super) fn transmit(&mut self, slot: ConnectionSlot) -> Transmitted {
        let connection = &mut self.connections[slot];
        let Some(open) = connection.exchange else {
            return Transmitted::Yes;
        };
        let exchange = &mut self.requests.exchanges[open].exchange;
        let request = self.shared.mix.requests[exchange.request].http1();
        let mut quoted = false;
        let bytes = if let (Some(bytes), None) = (request.fixed(), &self.requests.buyer) {
            bytes
        } else {
            self.buffers.scratch.clear();
            let row = exchange.due.number;
            if let Err(reason) =
                request.write(&self.shared.plan.data, row, &mut self.buffers.scratch)
            {
                return Transmitted::Unwritten(reason);
            }
            if let Some(buyer) = &self.requests.buyer {
                let quote = buyer.quotes.usable(self.shared.clock.now());
                quoted = quote.is_some();
                buyer.insert_fields(quote, &mut self.buffers.scratch);
            }
            &self.buffers.scratch
        };
        connection.reader.begin(request.is_head);
        match connection.send(bytes) {
            Ok(()) => {
                self.requests.recording.tally.bytes_sent += bytes.len() as u64;
                connection.state = ConnectionState::Exchanging;
                exchange.moments.written = self.shared.clock.now();
                exchange.quoted = quoted;
                if quoted {
                    let exchange = *exchange;
                    self.requests.record_quote_use(&exchange);
                }
                Transmitted::Yes
            }
            Err(errno) => Transmitted::Refused(errno),
        }
    }

    /// Sends the rest of a request. Returns false if the peer accepts no more.
    pub(super) fn flush(&mut self, slot: ConnectionSlot) -> bool {
        let connection = &mut self.connections[slot];
        let waited = connection.has_unsent();
        match connection.flush() {
            Ok(()) => {
                if waited
                    && !connection.has_unsent()
                    && let Some(open) = connection.exchange
                    && let moments = &mut self.requests.exchanges[open].exchange.moments
                    && moments.first_byte.is_none()
                {
                    // Only now has the kernel accepted all of it.
                    moments.written = self.shared.clock.now();
                }
                true
            }
            Err(_) => false,
        }
    }
}

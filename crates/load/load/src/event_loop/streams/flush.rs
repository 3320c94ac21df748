//! The output of a turn: all requests of a connection leave with one call.

use super::super::EventLoop;
use crate::connection::ConnectionState;
use crate::slots::{ConnectionSlot, Slot as _};

impl EventLoop<'_> {
    /// Lists a connection for the next flush.
    pub(super) fn list(&mut self, slot: ConnectionSlot) {
        let streams = self.connections[slot.index()].streams_mut();
        if !streams.is_listed {
            streams.is_listed = true;
            self.streams.listed.push(slot);
        }
    }

    /// Passes the output of all listed connections to the kernel.
    pub(in super::super) fn flush_streams(&mut self) {
        while let Some(slot) = self.streams.listed.pop() {
            // A connection may have ended since it was listed.
            let Some(connection) = self.connections.get_mut(slot.index()) else {
                continue;
            };
            // A connection that closes has passed on its GOAWAY already. Handshakes and acknowledgements of QUIC are output,
            // too.
            let is_open = match connection.state {
                ConnectionState::Exchanging => true,
                ConnectionState::Connecting | ConnectionState::Closing => connection.is_quic(),
                _ => false,
            };
            let streams = connection.streams.as_mut();
            let is_listed = streams.is_some_and(|streams| std::mem::take(&mut streams.is_listed));
            if is_open && is_listed {
                self.flush_connection(slot);
            }
        }
    }

    /// Passes the output of a connection to the kernel, and further bodies, until either waits.
    pub(super) fn flush_connection(&mut self, slot: ConnectionSlot) {
        loop {
            let now = self.shared.clock.at(self.shared.clock.now());
            let connection = &mut self.connections[slot.index()];
            let flushed = connection.flush_streams(&mut self.scratch, now);
            match flushed {
                Ok((taken, is_whole)) => {
                    self.tally.bytes_sent += taken as u64;
                    self.schedule(slot);
                    if !is_whole {
                        return self.watch_writable(slot);
                    }
                }
                Err(errno) => return self.end_by_socket(slot, errno),
            }
            self.record_written(slot);
            if !self.continue_bodies(slot) {
                return;
            }
        }
    }

    /// Passes bodies on that wait for a window. Returns true if there is output again.
    pub(super) fn continue_bodies(&mut self, slot: ConnectionSlot) -> bool {
        loop {
            let client = &mut self.connections[slot.index()].streams_mut().client;
            match client.next_writable() {
                Some(open) => self.write_body(open),
                None => return client.has_output(),
            }
        }
    }

    /// Records that the kernel has the heads and ends of requests that were in the output.
    fn record_written(&mut self, slot: ConnectionSlot) {
        let streams = self.connections[slot.index()].streams_mut();
        if streams.written.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let mut written = std::mem::take(&mut streams.written);
        for id in written.drain(..) {
            let Some(entry) = self.exchanges.get(id) else {
                continue;
            };
            let (Some(stream), true) = (&mut entry.stream, entry.connection == Some(slot)) else {
                continue;
            };
            entry.exchange.moments.written = now;
            if !std::mem::replace(&mut stream.is_sent, true) {
                entry.exchange.moments.sent = now;
                let exchange = entry.exchange;
                self.count_sent(&exchange);
            }
        }
        self.connections[slot.index()].streams_mut().written = written;
    }
}

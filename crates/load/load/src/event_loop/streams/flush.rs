//! The output of a turn: all requests of a connection leave with one call.

use super::Streams;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;

impl Streams<'_, '_> {
    /// Passes the output of all listed connections to the kernel.
    pub(in super::super) fn flush_listed(&mut self) {
        while let Some(slot) = self.queues.take_listed() {
            // A connection may have ended since it was listed.
            let Some(connection) = self.connections.get_mut(slot) else {
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
    fn flush_connection(&mut self, slot: ConnectionSlot) {
        loop {
            let now = self.shared.clock.at(self.shared.clock.now());
            let connection = &mut self.connections[slot];
            let flushed = connection.flush_streams(&mut self.buffers.scratch, now);
            match flushed {
                Ok((taken, is_whole)) => {
                    self.requests.recording.tally.bytes_sent += taken as u64;
                    let timers = &mut self.queues.timers;
                    timers.schedule(connection, self.shared.clock);
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

    /// Waits for space in the socket of a connection. The connection ends if that is impossible.
    fn watch_writable(&mut self, slot: ConnectionSlot) {
        if let Err(errno) = self.connections.watch_writable(slot) {
            self.fail(slot, Outcome::ClientFailed, || errno.to_string());
        }
    }

    /// Passes bodies on that wait for a window. Returns true if there is output again.
    pub(super) fn continue_bodies(&mut self, slot: ConnectionSlot) -> bool {
        loop {
            let client = &mut self.connections[slot].streams_mut().client;
            match client.next_writable() {
                Some(open) => self.write_body(open),
                None => return client.has_output(),
            }
        }
    }

    /// Records that the kernel has the heads and ends of requests that were in the output.
    fn record_written(&mut self, slot: ConnectionSlot) {
        let streams = self.connections[slot].streams_mut();
        if streams.written.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let mut written = std::mem::take(&mut streams.written);
        for id in written.drain(..) {
            let Some(entry) = self.requests.exchanges.get(id) else {
                continue;
            };
            let (Some(stream), true) = (&mut entry.stream, entry.connection == Some(slot)) else {
                continue;
            };
            entry.exchange.moments.written = now;
            if !std::mem::replace(&mut stream.is_sent, true) {
                entry.exchange.moments.sent = now;
                let exchange = entry.exchange;
                self.requests.recording.count_sent(&exchange);
            }
        }
        self.connections[slot].streams_mut().written = written;
    }
}

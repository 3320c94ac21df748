//! The output of a turn: all requests of a connection leave with one call.

use super::super::EventLoop;
use crate::connection::ConnectionState;
use crate::outcome::Outcome;

impl EventLoop<'_> {
    /// Lists a connection for the next flush.
    pub(super) fn list(&mut self, slot: u32) {
        let http2 = self.connections[slot as usize].http2.as_mut();
        let http2 = http2.expect("the connection uses HTTP/2");
        if !http2.is_listed {
            http2.is_listed = true;
            self.streams.listed.push(slot);
        }
    }

    /// Passes the output of all listed connections to the kernel.
    pub(in super::super) fn flush_streams(&mut self) {
        while let Some(slot) = self.streams.listed.pop() {
            // A connection may have ended since it was listed.
            let Some(connection) = self.connections.get_mut(slot as usize) else {
                continue;
            };
            // A connection that closes has passed on its GOAWAY already.
            let is_open = connection.state == ConnectionState::Exchanging;
            let http2 = connection.http2.as_mut();
            let is_listed = http2.is_some_and(|http2| std::mem::take(&mut http2.is_listed));
            if is_open && is_listed {
                self.flush_connection(slot);
            }
        }
    }

    /// Passes the output of a connection to the kernel, and further bodies, until either waits.
    pub(super) fn flush_connection(&mut self, slot: u32) {
        loop {
            let connection = &mut self.connections[slot as usize];
            match connection.flush_streams() {
                Ok((taken, is_whole)) => {
                    self.tally.bytes_sent += taken as u64;
                    if !is_whole {
                        return self.watch_writable(slot);
                    }
                }
                Err(errno) => return self.fail(slot, Outcome::Reset, || errno.to_string()),
            }
            self.record_written(slot);
            if !self.continue_bodies(slot) {
                return;
            }
        }
    }

    /// Passes bodies on that wait for a window. Returns true if there is output again.
    pub(super) fn continue_bodies(&mut self, slot: u32) -> bool {
        loop {
            let http2 = self.connections[slot as usize].http2.as_mut();
            let client = &mut http2.expect("the connection uses HTTP/2").client;
            match client.next_writable() {
                Some((_, open)) => self.write_body(open),
                None => return !client.output().is_empty(),
            }
        }
    }

    /// Records that the kernel has the heads and ends of requests that were in the output.
    fn record_written(&mut self, slot: u32) {
        let http2 = self.connections[slot as usize].http2.as_mut();
        let http2 = http2.expect("the connection uses HTTP/2");
        if http2.written.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let mut written = std::mem::take(&mut http2.written);
        for (open, serial) in written.drain(..) {
            let Some(entry) = self.exchanges.get(open, serial) else {
                continue;
            };
            let (Some(stream), true) = (&mut entry.stream, entry.connection == Some(slot)) else {
                continue;
            };
            entry.exchange.moments.written = now;
            if !std::mem::replace(&mut stream.is_sent, true) {
                entry.exchange.moments.sent = now;
                let exchange = entry.exchange;
                if !exchange.is_resent {
                    self.count_sent(&exchange);
                }
            }
        }
        let http2 = self.connections[slot as usize].http2.as_mut();
        http2.expect("the connection uses HTTP/2").written = written;
    }
}

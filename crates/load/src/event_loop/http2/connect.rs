//! The connection of a queue.

use posthaste_http_streams::http2::Client;
use rustix::event::epoll::EventFlags;

use super::super::EventLoop;
use crate::connection::{ConnectionState, Http2State};
use crate::outcome::Outcome;
use crate::socket::{self, ConnectAttempt};

impl EventLoop<'_> {
    /// Opens a connection for a queue. If that is impossible, the waiting requests of the queue end.
    pub(super) fn open_connection(&mut self, queue: usize) {
        let server = self.streams.queues[queue].server;
        if self.connections.len() >= self.shared.limit {
            let reason = "the limit of open connections is reached";
            return self.fail_waiting(queue, Outcome::Dropped, reason);
        }
        let (outcome, reason) = match socket::connect(&self.shared.origins[server].address, true) {
            ConnectAttempt::Started(socket) => {
                let now = self.shared.clock.now();
                match self.insert_connection(socket, server, now) {
                    Ok(slot) => return self.prepare_streams(slot, queue),
                    Err((outcome, reason)) => (outcome, reason),
                }
            }
            failed => {
                let (outcome, errno) = failed.outcome();
                (outcome, errno.to_string())
            }
        };
        self.fail_waiting(queue, outcome, &reason);
    }

    /// Prepares a new connection for streams. Requests wait until it is established.
    fn prepare_streams(&mut self, slot: u32, queue: usize) {
        let fields = self.shared.fields.clone();
        let fields = fields.expect("the fields of a plan for HTTP/2 are numbered");
        let connection = &mut self.connections[slot as usize];
        connection.http2 = Some(Box::new(Http2State {
            client: Client::new(fields),
            queue,
            written: Vec::new(),
            is_listed: false,
            is_confirmed: false,
        }));
        self.streams.queues[queue].opening = Some(slot);
        self.watch(slot, EventFlags::OUT);
    }

    /// Begins HTTP/2 on a connection whose transport is established: the requests of its queue get streams.
    pub(in super::super) fn begin_streams(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.is_secure() && connection.protocol() != Some(b"h2") {
            let chosen = connection.protocol().unwrap_or_default();
            let chosen = match String::from_utf8_lossy(chosen) {
                name if name.is_empty() => "no protocol".to_owned(),
                name => name.into_owned(),
            };
            let reason = || format!("by ALPN the server chose {chosen}, not h2");
            return self.fail(slot, Outcome::TlsFailed, reason);
        }
        connection.state = ConnectionState::Exchanging;
        let http2 = connection.http2.as_ref();
        let queue = http2.expect("the connection uses HTTP/2").queue;
        let streams = &mut self.streams.queues[queue];
        debug_assert!(streams.opening == Some(slot), "two connections are opening");
        streams.opening = None;
        streams.connections.push(slot);
        self.list(slot);
        self.fill(queue);
        if self.connections[slot as usize].is_secure() {
            // SETTINGS of the server may have come with the end of the handshake.
            self.read_later(slot, false);
        }
    }
}

//! The connection of a queue.

use std::io;
use std::net::SocketAddr;

use posthaste_http::streams::http2::Http2StreamClient;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;

use super::super::shared::Shared;
use super::Streams;
use crate::exchange::connection::{ConnectionState, StreamState};
use crate::exchange::slots::ConnectionSlot;
use crate::exchange::stream_client::{StreamClient, StreamSetUp};
use crate::outcome::Outcome;
use crate::transport::quic::{QuicConnection, QuicServer};
use crate::transport::socket::{self, ConnectAttempt};

impl Streams<'_, '_> {
    /// Opens a connection for a queue. If that is impossible, the waiting requests of the queue end.
    pub(super) fn open_connection(&mut self, queue: usize) {
        let server = self.queues[queue].server;
        if self.connections.is_full() {
            let reason = "the limit of open connections is reached";
            return self.fail_waiting(queue, Outcome::Dropped, reason);
        }
        let tally = &mut self.requests.recording.tally;
        let address = self.connections.take_address(server, tally);
        let port = self.shared.local_port();
        let attempt = match self.shared.plan.protocol.quic() {
            None => socket::connect(&address, port, true),
            Some(_) => socket::connect_datagrams(&address, port),
        };
        let (outcome, reason) = match attempt {
            ConnectAttempt::Started(socket) => match self.prepare_streams(socket, address, queue) {
                Ok(()) => return,
                Err(failed) => failed,
            },
            failed => failed.outcome(),
        };
        if socket::is_of_address(outcome) {
            let tally = &mut self.requests.recording.tally;
            self.connections.fail_address(server, address, tally);
            if self.opens_another(queue) {
                return;
            }
        }
        self.fail_waiting(queue, outcome, &reason);
    }

    /// Opens a connection for a queue after one was not established, if requests wait and the server has an address that
    /// has not failed since the last success.
    pub(super) fn opens_another(&mut self, queue: usize) -> bool {
        let waiting = self.queues.first_waiting(queue, &self.requests.exchanges);
        let refused = &mut self.queues[queue];
        refused.refusals += 1;
        let (server, refusals) = (refused.server, refused.refusals);
        let opens = waiting.is_some() && self.connections.has_another(server, refusals);
        if opens {
            self.open_connection(queue);
        }
        opens
    }

    /// Prepares a new connection for streams. Requests wait until it is established.
    fn prepare_streams(
        &mut self,
        socket: OwnedFd,
        address: SocketAddr,
        queue: usize,
    ) -> Result<(), (Outcome, String)> {
        let server = self.queues[queue].server;
        let client = new_client(self.shared, &socket, server, address);
        let client = client.map_err(|error| (Outcome::ClientFailed, error.to_string()))?;
        let now = self.shared.clock.now();
        let tally = &mut self.requests.recording.tally;
        let slot = self
            .connections
            .insert(socket, server, address, now, tally)?;
        let connection = &mut self.connections[slot];
        connection.streams = Some(Box::new(StreamState {
            client,
            queue,
            written: Vec::new(),
            is_listed: false,
            is_confirmed: false,
        }));
        let id = connection.id;
        self.queues[queue].opening = Some(slot);
        if connection.is_quic() {
            // The first datagram leaves with the flush of this turn.
            self.queues.list(connection);
            self.watch(slot, EventFlags::empty());
            if self.connections.is_current(id) {
                let connection = &mut self.connections[slot];
                self.queues.begin_early_data(connection);
            }
        } else {
            self.watch(slot, EventFlags::OUT);
        }
        Ok(())
    }

    /// Registers a connection for events. It ends if that is impossible.
    fn watch(&mut self, slot: ConnectionSlot, also: EventFlags) {
        if let Err(errno) = self.connections.watch(slot, also) {
            self.fail(slot, Outcome::ClientFailed, || errno.to_string());
        }
    }

    /// Begins requests on a connection whose transport is established: the requests of its queue get streams.
    pub(in super::super) fn begin(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.connections[slot];
        if connection.is_secure() && connection.protocol() != Some(b"h2") {
            let chosen = connection.protocol().unwrap_or_default();
            let chosen = match String::from_utf8_lossy(chosen) {
                name if name.is_empty() => "no protocol".to_owned(),
                name => name.into_owned(),
            };
            let reason = || format!("by ALPN the server chose {chosen}, not h2; write --http 1.1");
            return self.fail(slot, Outcome::TlsFailed, reason);
        }
        connection.state = ConnectionState::Exchanging;
        let queue = connection.streams().queue;
        let streams = &mut self.queues[queue];
        streams.refusals = 0;
        if streams.opening == Some(slot) {
            streams.opening = None;
            streams.connections.push(slot);
        }
        debug_assert!(
            streams.connections.contains(&slot),
            "an established connection takes no requests"
        );
        self.queues.list(&mut self.connections[slot]);
        self.fill(queue);
        if self.connections[slot].is_secure() {
            // SETTINGS of the server may have come with the end of the handshake.
            self.connections.read_later(slot, false);
        }
    }
}

/// Creates the state machine of a connection.
fn new_client(
    shared: &Shared<'_>,
    socket: &OwnedFd,
    server: usize,
    address: SocketAddr,
) -> io::Result<StreamClient> {
    let set_up = shared.streams.as_ref();
    let (fields, config) = match set_up.expect("the protocol has streams") {
        StreamSetUp::Http2(fields) => {
            let client = Http2StreamClient::new(fields.clone());
            return Ok(StreamClient::Http2(Box::new(client)));
        }
        StreamSetUp::Http3 { fields, config } => (fields.clone(), config),
    };
    let now = shared.clock.at(shared.clock.now());
    let server = QuicServer {
        index: server,
        address,
        name: &shared.names[&server].to_str(),
    };
    let quic = QuicConnection::new(config, socket, &server, fields, now)?;
    Ok(StreamClient::Http3(Box::new(quic)))
}

//! A connection of HTTP/3: datagrams on one side, streams on the other.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant as WallInstant;

use bytes::Bytes;
use posthaste_http::streams::http3::qpack::FieldPlan;
use posthaste_http::streams::http3::{
    ErrorCode, Http3Error, Http3StreamClient, OutputAction, StreamId,
};
use posthaste_http::streams::{EventSink, OpenError, StreamRequest};
use posthaste_units::Instant;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent,
    VarInt, WriteError,
};

use super::QuicConfig;
use super::datagrams::{self, DatagramSocket};
use super::early::EarlyData;
use super::loss;
use super::qlog::{ConnectionLog, QlogClosing, QlogDirection};
use crate::outcome::Outcome;
use crate::transport::multiplexed::StreamCounts;

/// The end of a connection, with the outcome of its requests.
pub(crate) enum QuicEnd {
    /// The transport ended.
    Lost(Outcome, String),
    /// The server violated HTTP/3.
    Violation(Http3Error),
}

/// The server of a connection.
pub(crate) struct QuicServer<'s> {
    /// Its number among the servers of the run.
    pub(crate) index: usize,
    pub(crate) address: SocketAddr,
    /// Its name in TLS.
    pub(crate) name: &'s str,
}

/// The client's end of a connection.
///
/// Order of calls: [`new`](Self::new), then [`flush`](Self::flush) after each other call, [`receive`](Self::receive)
/// when the socket is readable, [`expire`](Self::expire) at [`timer`](Self::timer).
pub(crate) struct QuicConnection {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    transport: Connection,
    pub(crate) client: Http3StreamClient,
    fields: Arc<FieldPlan>,
    datagrams: DatagramSocket,
    /// Streams that the transport has opened. One is opened ahead of its request, because the transport states the
    /// server's limit only by refusing.
    opened: u64,
    is_established: bool,
    /// True if the control stream is open: after the handshake, and for early data before.
    is_open: bool,
    early: EarlyData,
    /// Requests of rejected early data, in the order of their streams.
    rejected: Vec<u32>,
    /// True if connections of the run resume others, for which this one gets tickets.
    collects_tickets: bool,
    /// Time of the timer that is set.
    pub(crate) scheduled: Option<Instant>,
    /// Code of the end, for CONNECTION_CLOSE.
    code: ErrorCode,
    /// The qlog file, if the connection has one.
    log: Option<ConnectionLog>,
}

impl QuicConnection {
    /// Begins a connection. Its first datagram waits for [`flush`](Self::flush).
    pub(crate) fn new(
        config: &QuicConfig,
        socket: &OwnedFd,
        server: &QuicServer<'_>,
        fields: Arc<FieldPlan>,
        now: WallInstant,
    ) -> io::Result<Self> {
        let datagrams = DatagramSocket::new(socket)?;
        let mut endpoint = Endpoint::new(config.endpoint.clone(), None, false, None);
        let client = config.clients[server.index].clone();
        let begun = endpoint.connect(now, client, server.address, server.name);
        let (handle, transport) = begun.map_err(io::Error::other)?;
        let mut connection = Self {
            endpoint,
            handle,
            transport,
            client: Http3StreamClient::new(fields.clone()),
            fields,
            datagrams,
            opened: 0,
            is_established: false,
            is_open: false,
            early: EarlyData::None,
            rejected: Vec::new(),
            collects_tickets: config.has_early_data,
            scheduled: None,
            code: ErrorCode::H3_NO_ERROR,
            log: config
                .qlog
                .as_ref()
                .and_then(|directory| ConnectionLog::begin(directory, socket, server.address, now)),
        };
        connection.offer_early_data();
        Ok(connection)
    }

    /// Opens streams before the handshake, if a ticket permits it. The limits are those of the earlier connection.
    fn offer_early_data(&mut self) {
        if !self.transport.has_0rtt() {
            return;
        }
        self.early = EarlyData::Offered;
        self.open_ahead();
        self.is_open = self.opened > 0 && self.transport.streams().open(Dir::Uni).is_some();
    }

    /// True while requests are sent as early data.
    pub(crate) const fn is_early(&self) -> bool {
        self.is_open && !self.is_established
    }

    /// Takes the requests in early data that the server has rejected, in the order of their streams.
    pub(crate) fn take_rejected(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.rejected)
    }

    /// True if tickets for further connections are still expected. Servers send them at the end of the handshake, as they
    /// do HANDSHAKE_DONE.
    pub(crate) fn awaits_tickets(&self) -> bool {
        self.collects_tickets && self.transport.stats().frame_rx.handshake_done == 0
    }

    /// True once the handshake is complete.
    pub(crate) const fn is_established(&self) -> bool {
        self.is_established
    }

    /// Time at which [`expire`](Self::expire) has to be called.
    pub(crate) fn timer(&mut self) -> Option<WallInstant> {
        self.transport.poll_timeout()
    }

    /// Reads one buffer of datagrams, and returns its bytes. `WouldBlock` if there are none.
    pub(crate) fn receive(
        &mut self,
        socket: &OwnedFd,
        buffer: &mut [u8],
        answer: &mut Vec<u8>,
        now: WallInstant,
    ) -> io::Result<usize> {
        let received = self.datagrams.receive(socket, buffer)?;
        if let Some(log) = self.log.as_mut().filter(|_| received.length > 0) {
            let (length, stride) = (received.length, received.stride);
            log.datagrams(QlogDirection::Received, length, stride, now);
        }
        for datagram in buffer[..received.length].chunks(received.stride) {
            answer.clear();
            let (source, ecn) = (received.source, received.ecn);
            let event = self
                .endpoint
                .handle(now, source, None, ecn, datagram.into(), answer);
            // Other events are those of servers, and answers to datagrams of other connections.
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.transport.handle_event(event);
            }
        }
        Ok(received.length)
    }

    /// Handles the expiry of a timer: of an acknowledgement, a probe, pacing, or the connection.
    pub(crate) fn expire(&mut self, now: WallInstant) {
        self.transport.handle_timeout(now);
    }

    /// Passes events of the transport on: to the client of HTTP/3, and its events to `sink`.
    pub(crate) fn poll(
        &mut self,
        sink: &mut impl EventSink,
        now: WallInstant,
    ) -> Result<(), QuicEnd> {
        while let Some(event) = self.transport.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.transport.handle_event(event);
            }
        }
        while let Some(event) = self.transport.poll() {
            match event {
                Event::Connected => self.establish()?,
                Event::ConnectionLost { reason } => {
                    self.log_end(&QlogClosing::Lost(&reason), now);
                    let (outcome, reason) = loss::outcome(&reason);
                    return Err(QuicEnd::Lost(outcome, reason));
                }
                Event::Stream(event) => self.handle_stream(event, sink)?,
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
        Ok(())
    }

    /// Opens the control stream, and the stream of the first request, unless early data has done so.
    fn establish(&mut self) -> Result<(), QuicEnd> {
        if let EarlyData::Offered = self.early {
            self.end_early_data();
        }
        // A server must permit three at least (RFC 9114, section 6.2).
        if !self.is_open && self.transport.streams().open(Dir::Uni).is_none() {
            let reason = "the server permits no unidirectional streams";
            return Err(QuicEnd::Lost(Outcome::ProtocolError, reason.to_owned()));
        }
        (self.is_open, self.is_established) = (true, true);
        self.open_ahead();
        Ok(())
    }

    /// Handles the server's answer to early data. After a rejection QUIC has no streams, and the limits are new.
    fn end_early_data(&mut self) {
        let tokens = self.client.open_tokens();
        let mut open: Vec<(u64, u32)> = tokens.map(|(id, token)| (id.number(), token)).collect();
        if self.transport.accepted_0rtt() {
            self.early = EarlyData::Accepted;
            // The new limits may be higher, and QUIC does not report that.
            self.client.writable(StreamId::CONTROL);
            let writable = open.into_iter().map(|(id, _)| StreamId::new(id));
            return writable.for_each(|id| self.client.writable(id));
        }
        open.sort_unstable();
        self.rejected = open.into_iter().map(|(_, token)| token).collect();
        let client = Http3StreamClient::new(self.fields.clone());
        let ended = std::mem::replace(&mut self.client, client);
        self.early = EarlyData::Rejected(Box::new(ended));
        (self.opened, self.is_open) = (0, false);
    }

    fn handle_stream(
        &mut self,
        event: StreamEvent,
        sink: &mut impl EventSink,
    ) -> Result<(), QuicEnd> {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.transport.streams().accept(dir) {
                    self.read(id, sink)?;
                }
            }
            StreamEvent::Readable { id } => self.read(id, sink)?,
            StreamEvent::Writable { id } => self.client.writable(StreamId::new(id.into())),
            StreamEvent::Stopped { id, error_code } => {
                let code = ErrorCode(error_code.into());
                let stream = StreamId::new(id.into());
                let result = self.client.receive_stop(stream, code, sink);
                result.map_err(|error| self.violation(error))?;
            }
            StreamEvent::Available { dir: Dir::Bi } => self.open_ahead(),
            StreamEvent::Available { .. } | StreamEvent::Finished { .. } => {}
        }
        Ok(())
    }

    /// Reads all that has arrived on a stream.
    fn read(
        &mut self,
        id: quinn_proto::StreamId,
        sink: &mut impl EventSink,
    ) -> Result<(), QuicEnd> {
        let stream = StreamId::new(id.into());
        let mut received = self.transport.recv_stream(id);
        // A stream that we stopped has nothing more to read.
        let Ok(mut chunks) = received.read(true) else {
            return Ok(());
        };
        let mut result = Ok(());
        while result.is_ok() {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => result = self.client.receive(stream, &chunk.bytes, false, sink),
                Ok(None) => {
                    result = self.client.receive(stream, &[], true, sink);
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    let code = ErrorCode(code.into());
                    result = self.client.receive_reset(stream, code, sink);
                    break;
                }
            }
        }
        // Window updates leave with the next flush.
        let _ = chunks.finalize();
        result.map_err(|error| self.violation(error))
    }

    fn violation(&mut self, error: Http3Error) -> QuicEnd {
        self.code = error.code;
        QuicEnd::Violation(error)
    }

    /// Opens a stream for a request. Returns its identifier.
    pub(crate) fn open(
        &mut self,
        token: u32,
        request: &StreamRequest<'_>,
    ) -> Result<u64, OpenError> {
        let id = self.client.open(token, request)?;
        self.open_ahead();
        Ok(id.number())
    }

    /// Resets a stream whose request has ended for the generator.
    pub(crate) fn cancel(&mut self, stream: u64) -> bool {
        self.client
            .reset(StreamId::new(stream), ErrorCode::H3_REQUEST_CANCELLED)
    }

    fn open_ahead(&mut self) {
        while self.client.counters().opened == self.opened
            && self.transport.streams().open(Dir::Bi).is_some()
        {
            self.opened += 1;
            self.client.permit_streams(self.opened);
        }
    }

    /// Passes the output of HTTP/3 to the transport and the datagrams of the transport to the kernel. Returns the bytes
    /// of the datagrams, and true if the kernel has all.
    pub(crate) fn flush(
        &mut self,
        socket: &OwnedFd,
        scratch: &mut Vec<u8>,
        now: WallInstant,
    ) -> io::Result<(usize, bool)> {
        if self.is_open {
            self.write_streams();
        }
        let mut sent = 0;
        let kept = self.datagrams.unsent();
        if !self.datagrams.flush(socket)? {
            return Ok((sent, false));
        }
        if let Some(sizes) = kept {
            self.log_sent(sizes, now);
        }
        loop {
            scratch.clear();
            let batch = self.datagrams.batch();
            let Some(transmit) = self.transport.poll_transmit(now, batch, scratch) else {
                self.log_metrics(now);
                return Ok((sent, true));
            };
            sent += transmit.size;
            let sizes = datagrams::sizes(&transmit);
            let bytes = &scratch[..transmit.size];
            if !self.datagrams.send(socket, transmit, bytes)? {
                return Ok((sent, false));
            }
            self.log_sent(sizes, now);
        }
    }

    fn log_sent(&mut self, sizes: (usize, usize), now: WallInstant) {
        if let Some(log) = &mut self.log {
            let (length, size) = sizes;
            log.datagrams(QlogDirection::Sent, length, size, now);
        }
    }

    fn log_metrics(&mut self, now: WallInstant) {
        if let Some(log) = &mut self.log {
            log.metrics(&self.transport.stats(), now);
        }
    }

    fn log_end(&mut self, closing: &QlogClosing<'_>, now: WallInstant) {
        self.log_metrics(now);
        if let Some(log) = &mut self.log {
            log.close(closing, now);
        }
    }

    /// True if HTTP/3 has output that the transport may accept.
    pub(crate) fn has_output(&mut self) -> bool {
        self.is_open && self.client.has_output()
    }

    /// Passes the output of HTTP/3 to the streams of the transport, as far as they accept it.
    fn write_streams(&mut self) {
        while let Some(action) = self.client.output() {
            match action {
                OutputAction::Write { stream, bytes, fin } => {
                    let length = bytes.len();
                    let mut sending = self.transport.send_stream(transport_id(stream));
                    match sending.write(bytes) {
                        Ok(count) => {
                            if fin && count == length {
                                // A stream that the server has stopped is over in any case.
                                let _ = sending.finish();
                            }
                            self.client.sent(stream, count);
                        }
                        // The next event of the transport states that it is writable again, or its end.
                        Err(
                            WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream,
                        ) => self.client.blocked(stream),
                    }
                }
                OutputAction::Reset { stream, code } => {
                    // A stream that has ended needs no reset.
                    let _ = self
                        .transport
                        .send_stream(transport_id(stream))
                        .reset(varint(code));
                }
                OutputAction::Stop { stream, code } => {
                    let _ = self
                        .transport
                        .recv_stream(transport_id(stream))
                        .stop(varint(code));
                }
            }
        }
    }

    /// Sends CONNECTION_CLOSE, if the server has answered at all.
    pub(crate) fn close(&mut self, socket: &OwnedFd, now: WallInstant) {
        if self.transport.stats().udp_rx.datagrams == 0 {
            return self.log_end(&QlogClosing::Abandoned, now);
        }
        self.log_end(&QlogClosing::Closed(self.code.0), now);
        self.transport.close(now, varint(self.code), Bytes::new());
        // The server need not take it.
        let _ = self.flush(socket, &mut Vec::new(), now);
    }

    /// Adds the counts of the connection.
    pub(crate) fn add_counts(&self, counts: &mut StreamCounts) {
        counts.add(self.client.counters());
        if let EarlyData::Rejected(ended) = &self.early {
            counts.add(ended.counters());
        }
        self.early.count(&mut counts.early_data);
        let received = self.transport.stats().frame_rx;
        counts.windows_exhausted += received.data_blocked + received.stream_data_blocked;
    }
}

fn transport_id(stream: StreamId) -> quinn_proto::StreamId {
    varint_of(stream.number()).into()
}

fn varint(code: ErrorCode) -> VarInt {
    varint_of(code.0)
}

fn varint_of(value: u64) -> VarInt {
    VarInt::from_u64(value).expect("codes and identifiers have 62 bits")
}

//! One end of a QUIC connection: an endpoint of quinn-proto, its only connection, and their events.
//!
//! Call [`receive`](QuicEnd::receive) for each datagram, [`expire`](QuicEnd::expire) when a timer is due, then
//! [`update`](QuicEnd::update), then the program, then [`transmit`](QuicEnd::transmit) until nothing is left.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionStats, DatagramEvent,
    Endpoint, EndpointConfig, Event, FrameStats, Incoming, ServerConfig, Transmit,
};

use crate::certificate::SERVER_NAME;
use crate::datagram::CarriedDatagram;
use crate::epoch::StdInstant;
use crate::frames::{Frames, SentCause};
use crate::late::Preparation;

/// Addresses of client and server. Only their difference matters.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 443);

/// One end.
pub(crate) struct QuicEnd {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    late_identifiers: bool,
    /// The handshake of a server that is not ready.
    preparation: Option<Preparation>,
    /// Answers of the endpoint without a connection.
    answers: Vec<CarriedDatagram>,
    buffer: Vec<u8>,
    connected: bool,
    lost: Option<ConnectionError>,
    counts: EndCounts,
    /// A timer has expired in this turn, and no packet was declared lost.
    probing: bool,
    /// Packets declared lost that no datagram has followed.
    unreported: u64,
}

/// Counts of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// Datagrams handed to the link.
    pub sent: u64,
    /// Datagrams received intact.
    pub received: u64,
    /// Expired probe timeouts that sent at least one datagram.
    pub timeouts: u64,
    /// Datagrams that a probe timeout sent.
    pub probes: u64,
    /// Packets declared lost because later ones were acknowledged (RFC 9002, section 6.1).
    pub declared_lost: u64,
}

/// A datagram to send.
pub(crate) struct OutgoingDatagram {
    pub(crate) datagram: CarriedDatagram,
    pub(crate) frames: Frames,
    pub(crate) cause: SentCause,
}

impl QuicEnd {
    /// Creates a client that connects at once.
    pub(crate) fn connect(
        config: &Arc<EndpointConfig>,
        client: ClientConfig,
        seed: [u8; 32],
        now: StdInstant,
    ) -> Self {
        let endpoint = Endpoint::new(config.clone(), None, false, Some(seed));
        let mut end = Self::new(endpoint, SERVER);
        let connected = end.endpoint.connect(now, client, SERVER, SERVER_NAME);
        // The name is valid, the endpoint is new, and the version is quinn's own.
        end.connection = Some(connected.expect("a new endpoint can connect"));
        end
    }

    /// Creates a server. With `late_identifiers` it issues connection identifiers after its first flight. With a
    /// `preparation` its handshake is late.
    pub(crate) fn listen(
        config: &Arc<EndpointConfig>,
        server: &Arc<ServerConfig>,
        seed: [u8; 32],
        late_identifiers: bool,
        preparation: Option<Preparation>,
    ) -> Self {
        let endpoint = Endpoint::new(config.clone(), Some(server.clone()), false, Some(seed));
        Self {
            late_identifiers,
            preparation,
            ..Self::new(endpoint, CLIENT)
        }
    }

    fn new(endpoint: Endpoint, peer: SocketAddr) -> Self {
        Self {
            endpoint,
            connection: None,
            peer,
            late_identifiers: false,
            preparation: None,
            answers: Vec::new(),
            buffer: Vec::new(),
            connected: false,
            lost: None,
            counts: EndCounts::default(),
            probing: false,
            unreported: 0,
        }
    }

    /// Handles a datagram from the link.
    pub(crate) fn receive(&mut self, now: StdInstant, datagram: &CarriedDatagram) {
        self.counts.received += 1;
        let preparation = self.preparation.as_mut();
        if preparation.is_none_or(|preparation| preparation.note(now, datagram)) {
            self.handle(now, datagram);
        }
    }

    fn handle(&mut self, now: StdInstant, datagram: &CarriedDatagram) {
        let data = BytesMut::from(&datagram.payload[..]);
        self.buffer.clear();
        let event =
            self.endpoint
                .handle(now, self.peer, None, datagram.ecn, data, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.answer(&transmit),
            None => {}
        }
    }

    /// Accepts the first connection. A copy of its first packet that arrives after its end is ignored: the simulation
    /// has one connection.
    fn accept(&mut self, now: StdInstant, incoming: Incoming) {
        if self.connection.is_some() {
            self.endpoint.ignore(incoming);
            return;
        }
        self.buffer.clear();
        let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
        match accepted {
            Ok(connection) => self.connection = Some(connection),
            Err(refused) => {
                if let Some(transmit) = refused.response {
                    self.answer(&transmit);
                }
            }
        }
    }

    fn answer(&mut self, transmit: &Transmit) {
        self.answers.push(CarriedDatagram {
            payload: Bytes::copy_from_slice(&self.buffer[..transmit.size]),
            damaged: false,
            ecn: transmit.ecn,
        });
    }

    /// Time of the next timer.
    pub(crate) fn timeout(&mut self) -> Option<StdInstant> {
        let preparation = self.preparation.as_ref().and_then(Preparation::timeout);
        let connection = self.connection().and_then(Connection::poll_timeout);
        preparation.into_iter().chain(connection).min()
    }

    /// Handles the timers that are due.
    pub(crate) fn expire(&mut self, now: StdInstant) {
        self.probing = false;
        let is_due = |at: Option<StdInstant>| at.is_some_and(|at| at <= now);
        let preparation = &mut self.preparation;
        let finished = preparation.take_if(|preparation| is_due(preparation.timeout()));
        if let Some(first) = finished.and_then(Preparation::finish) {
            self.handle(now, &first);
        }
        if let Some((_, connection)) = &mut self.connection
            && is_due(connection.poll_timeout())
        {
            connection.handle_timeout(now);
            self.count_losses();
            self.probing = self.unreported == 0;
        }
    }

    /// Exchanges the events of endpoint and connection, and reads those for the program.
    pub(crate) fn update(&mut self) {
        self.count_losses();
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        let may_issue = !self.late_identifiers || connection.stats().frame_tx.crypto > 0;
        while may_issue && let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                // The programs look at their streams after each event.
                _ => {}
            }
        }
    }

    fn count_losses(&mut self) {
        let lost = self.stats().path.lost_packets;
        self.unreported += lost - self.counts.declared_lost;
        self.counts.declared_lost = lost;
    }

    /// The next datagram to send at `now`.
    pub(crate) fn transmit(&mut self, now: StdInstant) -> Option<OutgoingDatagram> {
        if let Some(datagram) = self.answers.pop() {
            self.counts.sent += 1;
            return Some(OutgoingDatagram {
                datagram,
                frames: Frames::default(),
                cause: SentCause::Stateless,
            });
        }
        let before = self.stats().frame_tx;
        let (_, connection) = self.connection.as_mut()?;
        self.buffer.clear();
        let transmit = connection.poll_transmit(now, 1, &mut self.buffer)?;
        debug_assert!(
            transmit.segment_size.is_none(),
            "one datagram was requested"
        );
        let is_closed = connection.is_closed();
        self.counts.sent += 1;
        let frames = self.frames(&before, is_closed);
        Some(OutgoingDatagram {
            datagram: CarriedDatagram {
                payload: Bytes::copy_from_slice(&self.buffer[..transmit.size]),
                damaged: false,
                ecn: transmit.ecn,
            },
            frames,
            cause: self.cause(&frames),
        })
    }

    fn frames(&self, before: &FrameStats, is_closed: bool) -> Frames {
        let mut frames = Frames::between(before, &self.stats().frame_tx);
        frames.close = is_closed;
        frames
    }

    /// Cause of a datagram with these frames. Counts it.
    fn cause(&mut self, frames: &Frames) -> SentCause {
        if self.probing && frames.can_probe() {
            self.counts.probes += 1;
            return SentCause::Probe;
        }
        match std::mem::take(&mut self.unreported) {
            lost if lost > 0 && frames.elicits_ack() => SentCause::Losses(lost),
            lost => {
                self.unreported = lost;
                SentCause::Ordinary
            }
        }
    }

    /// Ends the turn of this end.
    pub(crate) fn end_turn(&mut self, probes: u64) {
        self.counts.timeouts += u64::from(self.counts.probes > probes);
        self.probing = false;
    }

    /// The connection, if there is one.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// True if the handshake is complete.
    pub(crate) const fn is_connected(&self) -> bool {
        self.connected
    }

    /// Reason for which the connection was lost.
    pub(crate) const fn lost(&self) -> Option<&ConnectionError> {
        self.lost.as_ref()
    }

    /// True if no connection needs time or datagrams.
    pub(crate) fn is_over(&self) -> bool {
        let connection = self.connection.as_ref();
        self.answers.is_empty() && connection.is_none_or(|(_, connection)| connection.is_drained())
    }

    /// Counts so far.
    pub(crate) const fn counts(&self) -> &EndCounts {
        &self.counts
    }

    fn stats(&self) -> ConnectionStats {
        let connection = self.connection.as_ref();
        connection.map_or_else(ConnectionStats::default, |(_, connection)| {
            connection.stats()
        })
    }
}

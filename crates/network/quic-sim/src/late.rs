//! A server whose handshake is not ready at once, and that can acknowledge the client's first packet before it
//! ("instant ACK").
//!
//! quinn-proto asks TLS for its messages while it handles a packet, so that it sends them with the acknowledgement.
//! [`LateTls`] has none until the handshake is ready. The first datagram is then handled once more, which makes
//! quinn-proto ask again: it does not recognise a copy of the packet that began a connection. The copy also counts
//! towards the bytes that a server may send before it has validated the address (RFC 9000, section 8.1).

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError};

use crate::LateHandshake;
use crate::datagram::CarriedDatagram;
use crate::epoch::StdInstant;

/// True once the messages of a handshake may leave.
pub(crate) type IsReady = Arc<AtomicBool>;

/// A late handshake, until it is ready.
pub(crate) struct Preparation {
    late: LateHandshake,
    is_ready: IsReady,
    /// The client's first datagram, and the time at which the handshake is ready.
    first: Option<(StdInstant, CarriedDatagram)>,
}

impl Preparation {
    pub(crate) fn new(late: LateHandshake, is_ready: IsReady) -> Self {
        is_ready.store(false, Ordering::Relaxed);
        Self {
            late,
            is_ready,
            first: None,
        }
    }

    /// Notes a datagram that has arrived. Returns true if it is also to be handled now.
    pub(crate) fn note(&mut self, now: StdInstant, datagram: &CarriedDatagram) -> bool {
        let after = Duration::from_nanos(self.late.after.as_nanos());
        self.first
            .get_or_insert_with(|| (now + after, datagram.clone()));
        self.late.acknowledges
    }

    /// Time at which the handshake is ready.
    pub(crate) fn timeout(&self) -> Option<StdInstant> {
        self.first.as_ref().map(|(due, _)| *due)
    }

    /// Lets the messages of the handshake leave. Returns the datagram to handle for it.
    pub(crate) fn finish(self) -> Option<CarriedDatagram> {
        self.is_ready.store(true, Ordering::Relaxed);
        self.first.map(|(_, datagram)| datagram)
    }
}

/// TLS of a server that has no messages until it is ready.
pub(crate) struct LateTls {
    pub(crate) tls: Arc<QuicServerConfig>,
    pub(crate) is_ready: IsReady,
}

impl ServerConfig for LateTls {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.tls.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.tls.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(LateSession {
            session: self.tls.clone().start_session(version, parameters),
            is_ready: self.is_ready.clone(),
        })
    }
}

struct LateSession {
    session: Box<dyn Session>,
    is_ready: IsReady,
}

impl Session for LateSession {
    fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
        if self.is_ready.load(Ordering::Relaxed) {
            self.session.write_handshake(buffer)
        } else {
            None
        }
    }

    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        self.session.initial_keys(id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.session.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.session.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.session.read_handshake(bytes)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.session.next_1rtt_keys()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.session.export_keying_material(output, label, context)
    }
}

//! Codes of QUIC, and the end of a connection by a violation.

use posthaste_http::streams::http3::{ErrorCode, Http3Error};
use quinn::{Connection, VarInt};

use crate::connection::peer::Peer;
use crate::counters::add_one;

/// The code as QUIC has it.
pub(super) fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.0).expect("codes have 62 bits")
}

/// Closes a connection whose client violates the protocol.
pub(super) fn fail(connection: &Connection, peer: &Peer, error: Http3Error) {
    tracing::debug!(%error, peer = %peer.address, "connection ended");
    add_one(&peer.thread.server.counters.protocol_errors);
    connection.close(code(error.code), error.reason.as_bytes());
}

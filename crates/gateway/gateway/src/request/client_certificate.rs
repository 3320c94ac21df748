//! `Client-Cert` for upstreams: the verified certificate of the client (RFC 9440).
//!
//! Upstreams believe this field, so none that a client wrote may reach them (RFC 9440, section 4), in any spelling of
//! its name or as a trailer. Those of peers that are not trusted have been removed with the other fields about the
//! client ([`ClientIdentity`](super::client::ClientIdentity)). The field is added after the removal of the fields that
//! `Connection` names, so that a client cannot suppress it.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use posthaste_serve::Peer;

use super::field_names::is_of_certificate;

const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");

/// Replaces the fields about the client's certificate by that of the connection, if there is one.
///
/// `verifies` is true if the gateway verifies certificates of clients. If it does not, the fields of a trusted proxy
/// in front of the gateway stay as they are.
pub(crate) fn set_client_certificate(headers: &mut HeaderMap, peer: &Peer, verifies: bool) {
    let certificate = peer.certificate();
    // A connection may be newer than the configuration of this thread.
    if verifies || certificate.is_some() {
        remove_client_certificate(headers);
    }
    if let Some(certificate) = certificate {
        headers.insert(CLIENT_CERT, certificate.clone());
    }
}

/// Removes the fields about certificates of clients.
fn remove_client_certificate(fields: &mut HeaderMap) {
    let names = fields.keys().filter(|name| is_of_certificate(name));
    let names: Vec<HeaderName> = names.cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

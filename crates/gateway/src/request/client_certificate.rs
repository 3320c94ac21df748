//! `Client-Cert` for upstreams: the verified certificate of the client (RFC 9440).
//!
//! Upstreams believe this field, so none that a client wrote may reach them (RFC 9440, section 4): neither under its
//! own name, nor with underscores, which CGI and its successors do not tell from hyphens, nor as a trailer. The field
//! is added after the removal of the fields that `Connection` names, so that a client cannot suppress it.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use posthaste_serve::Peer;

const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");

/// Names of the fields, with hyphens.
const NAMES: [&str; 2] = ["client-cert", "client-cert-chain"];

/// Replaces the fields about the client's certificate by that of the connection, if there is one.
///
/// `verifies` is true if the gateway verifies certificates of clients. If it does not, the fields stay as they are:
/// a proxy in front of the gateway may have set them.
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
pub(crate) fn remove_client_certificate(fields: &mut HeaderMap) {
    let names = fields.keys().filter(|name| is_of_certificate(name));
    let names: Vec<HeaderName> = names.cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

fn is_of_certificate(name: &HeaderName) -> bool {
    let hyphenated = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let name = name.as_str();
    NAMES
        .iter()
        .any(|known| known.len() == name.len() && name.bytes().map(hyphenated).eq(known.bytes()))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn every_spelling_is_removed_and_nothing_else() {
        let mut fields = HeaderMap::new();
        for name in [
            "client-cert",
            "client_cert",
            "client-cert-chain",
            "client_cert-chain",
            "client-cert_chain",
            "client_cert_chain",
            "client-certs",
            "x-client-cert",
        ] {
            let name = HeaderName::from_static(name);
            fields.append(name.clone(), HeaderValue::from_static(":AA==:"));
            fields.append(name, HeaderValue::from_static(":AQ==:"));
        }
        remove_client_certificate(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["client-certs", "x-client-cert"]);
    }
}

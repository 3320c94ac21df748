//! Names of the fields with statements about the client.
//!
//! Underscores count as hyphens, because CGI and its successors do not tell them apart.

use hyper::header::HeaderName;

/// Start of the names of forwarding fields.
const FORWARDED: &str = "x-forwarded-";

/// True for `Forwarded` and `X-Forwarded-*`.
pub(crate) fn is_about_client(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    match name.get(..FORWARDED.len()) {
        Some(start) => is_spelled(start, FORWARDED),
        None => name == b"forwarded",
    }
}

/// True for the fields with a client's certificate (RFC 9440).
pub(crate) fn is_of_certificate(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    is_spelled(name, "client-cert") || is_spelled(name, "client-cert-chain")
}

/// Compares a name with one that has hyphens.
fn is_spelled(name: &[u8], wanted: &str) -> bool {
    let hyphenated = |byte: u8| if byte == b'_' { b'-' } else { byte };
    name.len() == wanted.len()
        && name
            .iter()
            .zip(wanted.bytes())
            .all(|(byte, wanted)| hyphenated(*byte) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_count_as_hyphens() {
        let is = |class: fn(&HeaderName) -> bool, name| class(&HeaderName::from_static(name));
        for name in [
            "forwarded",
            "x-forwarded-for",
            "x_forwarded_for",
            "x-forwarded_proto",
            "x_forwarded-x",
        ] {
            assert!(is(is_about_client, name), "{name}");
        }
        for name in [
            "x-forwarded",
            "x-forwarder-for",
            "forwarded-for",
            "x-real-ip",
        ] {
            assert!(!is(is_about_client, name), "{name}");
        }
        for name in [
            "client-cert",
            "client_cert",
            "client-cert-chain",
            "client_cert-chain",
            "client-cert_chain",
            "client_cert_chain",
        ] {
            assert!(is(is_of_certificate, name), "{name}");
        }
        for name in ["client-certs", "x-client-cert", "client-cert-chains"] {
            assert!(!is(is_of_certificate, name), "{name}");
        }
    }
}

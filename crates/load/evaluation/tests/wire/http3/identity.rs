//! The identity of all servers in TLS.

use std::sync::{Arc, LazyLock};

use rustls::pki_types::PrivateKeyDer;

/// One certificate for all servers: keys are expensive.
static IDENTITY: LazyLock<(rcgen::Certificate, rcgen::KeyPair)> = LazyLock::new(|| {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let parameters = rcgen::CertificateParams::new(names).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    (parameters.self_signed(&key).unwrap(), key)
});

/// The certificate of all servers, as PEM.
pub(super) fn certificate() -> String {
    IDENTITY.0.pem()
}

/// A configuration of TLS with this protocol for the servers.
pub(super) fn tls(alpn: &[u8]) -> rustls::ServerConfig {
    let (certificate, key) = &*IDENTITY;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls
}

//! TLS 1.3 of both ends.
//!
//! All transactions of a simulator share the configurations. Nothing is resumed, so that each handshake is complete.

use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
};

use crate::certificate::ServerCertificate;

/// TLS of client and server.
pub(crate) struct TlsConfigs {
    pub(crate) client: Arc<QuicClientConfig>,
    pub(crate) server: Arc<QuicServerConfig>,
}

impl TlsConfigs {
    /// A server with a certificate of this length, and a client that trusts it.
    pub(crate) fn new(certificate: u32) -> Result<Self, Error> {
        let server = ServerCertificate::new(certificate);
        let provider = Arc::new(CryptoProvider {
            // The mandatory suite (RFC 8446, section 9.1). SHA-256 costs less than SHA-384 where the processor has it.
            cipher_suites: vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
            ..ring::default_provider()
        });
        let verifier = KnownCertificate {
            certificate: server.certificate.clone(),
            provider: provider.clone(),
        };
        let versions = &[&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        client.resumption = Resumption::disabled();
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_single_cert(vec![server.certificate], server.key)?;
        let without_suite = |_| Error::General("TLS_AES_128_GCM_SHA256 is missing".to_owned());
        Ok(Self {
            client: Arc::new(client.try_into().map_err(without_suite)?),
            server: Arc::new(server.try_into().map_err(without_suite)?),
        })
    }
}

/// Verifier of the client: it knows the certificate, and checks the signature of the handshake as usual.
///
/// A chain to a root certificate would cost computing time, and change no packet.
#[derive(Debug)]
struct KnownCertificate {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KnownCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC has TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

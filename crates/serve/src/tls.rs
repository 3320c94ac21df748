//! TLS with certificates from PEM files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// Reasons why a certificate or key is unusable.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read or has no PEM of the right kind.
    #[error("{}: {reason}: a PEM file with {wanted} is needed", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// The problem.
        #[source]
        reason: Box<dyn std::error::Error + Send + Sync>,
        /// The expected content.
        wanted: &'static str,
    },
    /// Neither a DNS name nor an address.
    #[error("{0:?} is no name that a server can prove: use a DNS name or an address")]
    Name(String),
    /// Certificate and key do not match, or rustls rejects them.
    #[error("the certificate and the key cannot be used: {0}: make both anew, together")]
    Unusable(#[from] rustls::Error),
}

impl TlsError {
    pub(crate) fn file(
        file: &Path,
        wanted: &'static str,
        reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::File {
            file: file.to_owned(),
            reason: reason.into(),
            wanted,
        }
    }
}

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub struct Certificate(Arc<CertifiedKey>);

impl Certificate {
    /// Reads both from PEM files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let wanted = "a certificate chain, the server's own first";
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|e| TlsError::file(certificate, wanted, e))?;
        if chain.is_empty() {
            return Err(TlsError::file(certificate, wanted, "no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|e| TlsError::file(key, "a private key", e))?;
        let certified = CertifiedKey::from_der(chain, key, &default_provider())?;
        Ok(Self(Arc::new(certified)))
    }
}

/// TLS settings of a server: HTTP/2 and HTTP/1.1 by ALPN, and a certificate that can be replaced at run time.
#[derive(Debug)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    presented: Arc<Presented>,
}

/// The certificate for new connections.
#[derive(Debug)]
struct Presented(RwLock<Arc<CertifiedKey>>);

impl ServerTls {
    /// Creates the settings with the first certificate.
    pub fn new(Certificate(first): Certificate) -> Result<Self, TlsError> {
        let presented = Arc::new(Presented(RwLock::new(first)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(presented.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            presented,
        })
    }

    /// Replaces the certificate for connections from now on.
    pub fn present(&self, Certificate(next): Certificate) {
        let presented = self.presented.0.write();
        *presented.unwrap_or_else(PoisonError::into_inner) = next;
    }
}

impl ResolvesServerCert for Presented {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(
            self.0
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        )
    }
}

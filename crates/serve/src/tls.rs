//! TLS from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// Why a certificate or key cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read or holds no PEM of the right kind.
    #[error("{}: {reason}: a PEM file with {wanted} is needed", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// What went wrong.
        reason: String,
        /// What it should hold.
        wanted: &'static str,
    },
    /// What is neither a DNS name nor an address.
    #[error("{0:?} is no name that a server can prove: use a DNS name or an address")]
    Name(String),
    /// Certificate and key do not go together, or rustls does not take them.
    #[error("the certificate and the key cannot be used: {0}: make both anew, together")]
    Unusable(#[from] rustls::Error),
}

/// Reads a certificate chain and its private key.
pub fn load_tls(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let file = |path: &Path, wanted, reason: String| TlsError::File {
        file: path.to_owned(),
        reason,
        wanted,
    };
    let wanted = "a certificate chain, the server's own first";
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|e| file(certificate, wanted, e.to_string()))?;
    if chain.is_empty() {
        return Err(file(certificate, wanted, "no certificate in it".to_owned()));
    }
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|e| file(key, "a private key", e.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

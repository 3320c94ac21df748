//! Errors of certificates and keys, of servers and of clients.

use std::path::{Path, PathBuf};

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
    /// A further certificate that no client can ask for.
    #[error(
        "{}: the certificate is for no DNS name, so no client gets it: make it the first one, or name a server in it",
        .0.display()
    )]
    Nameless(PathBuf),
    /// Certificate and key do not match, or rustls rejects them.
    #[error("the certificate and the key cannot be used: {0}: create both again, together")]
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

//! TLS of servers: certificates from PEM files, chosen by server name, and verification of clients.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring::default_provider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::tls::certificate_choice::CertificateChoice;
use crate::tls::certificate_names::certificate_names;
use crate::tls::client_verification::ClientVerifier;
use crate::tls::error::TlsError;

/// Sessions kept for resumption, as many as rustls keeps by default.
const SESSIONS: usize = 256;

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    /// Names of the first certificate of the chain. Empty if it cannot be read.
    names: Vec<String>,
    file: PathBuf,
}

impl Certificate {
    /// Reads both from PEM files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let wanted = "a certificate chain, the server's own first";
        let chain = read_certificates(certificate, wanted)?;
        // rustls may accept a certificate that cannot be read here. It can still be the first one.
        let names = certificate_names(&chain[0]).unwrap_or_default();
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|e| TlsError::file(key, "a private key", e))?;
        let certified = CertifiedKey::from_der(chain, key, &default_provider())?;
        Ok(Self {
            key: Arc::new(certified),
            names,
            file: certificate.to_owned(),
        })
    }

    /// The DNS names of the certificate, in lower case, as in [`crate::certificate_names()`].
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Reads all certificates of a PEM file, at least one.
fn read_certificates(
    file: &Path,
    wanted: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| TlsError::file(file, wanted, error))?;
    if certificates.is_empty() {
        return Err(TlsError::file(file, wanted, "no certificate in it"));
    }
    Ok(certificates)
}

/// Authorities that issue the certificates of clients.
#[derive(Clone, Debug)]
pub struct ClientAuthority(Arc<dyn ClientCertVerifier>);

impl ClientAuthority {
    /// Reads the authorities from a PEM file. With `is_optional`, clients without a certificate are accepted, too.
    pub fn read(file: &Path, is_optional: bool) -> Result<Self, TlsError> {
        let wanted = "the certificates of authorities";
        let mut roots = RootCertStore::empty();
        for certificate in read_certificates(file, wanted)? {
            let added = roots.add(certificate);
            added.map_err(|error| TlsError::file(file, wanted, error))?;
        }
        let provider = Arc::new(default_provider());
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        if is_optional {
            builder = builder.allow_unauthenticated();
        }
        let chains = builder
            .build()
            .map_err(|error| TlsError::file(file, wanted, error))?;
        Ok(Self(Arc::new(ClientVerifier { chains })))
    }
}

/// Complete TLS settings of a server: HTTP/2 and HTTP/1.1 by ALPN, certificates by server name (SNI), and verification
/// of clients.
#[derive(Debug)]
pub struct TlsSettings {
    config: ServerConfig,
    verifies_clients: bool,
}

impl TlsSettings {
    /// Creates settings that present `first` to clients without a server name or with an unknown one. Each of `others`
    /// needs a DNS name. Of several certificates for one name, a client gets the first that it can verify.
    pub fn new(
        first: Certificate,
        others: &[Certificate],
        clients: Option<ClientAuthority>,
    ) -> Result<Self, TlsError> {
        let mut choice = CertificateChoice::new(first.key.clone());
        // Without others the names make no difference.
        if !others.is_empty() {
            choice.add(&first.names, &first.key);
        }
        for other in others {
            if other.names.is_empty() {
                return Err(TlsError::Nameless(other.file.clone()));
            }
            choice.add(&other.names, &other.key);
        }
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?;
        let verifies_clients = clients.is_some();
        let builder = match clients {
            Some(ClientAuthority(verifier)) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(choice));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if verifies_clients {
            // A resumed session would pass without a look at its certificate, also after that has expired.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            config,
            verifies_clients,
        })
    }
}

/// TLS of a running server, with settings that can be replaced at run time.
#[derive(Debug)]
pub struct ServerTls {
    config: RwLock<Arc<ServerConfig>>,
    /// Sessions of clients that need no certificate. They outlive the settings.
    sessions: Arc<ServerSessionMemoryCache>,
}

impl ServerTls {
    /// Creates TLS with one certificate and without verification of clients.
    pub fn new(certificate: Certificate) -> Result<Self, TlsError> {
        Ok(Self::with(TlsSettings::new(certificate, &[], None)?))
    }

    /// Creates TLS with its first settings.
    pub fn with(settings: TlsSettings) -> Self {
        let sessions = ServerSessionMemoryCache::new(SESSIONS);
        let config = RwLock::new(prepare(settings, &sessions));
        Self { config, sessions }
    }

    /// Replaces the settings for connections from now on.
    pub fn present(&self, settings: TlsSettings) {
        let next = prepare(settings, &self.sessions);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// The settings for the next handshake.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let config = self.config.read();
        config.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn prepare(settings: TlsSettings, sessions: &Arc<ServerSessionMemoryCache>) -> Arc<ServerConfig> {
    let mut config = settings.config;
    if !settings.verifies_clients {
        config.session_storage = sessions.clone();
    }
    Arc::new(config)
}

/// Returns true for the error of a handshake in which the client's certificate is missing or invalid.
pub(crate) fn is_client_certificate_refused(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(
        inner,
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    )
}

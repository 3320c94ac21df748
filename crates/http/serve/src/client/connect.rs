//! Connections to other services, by TCP and optionally TLS.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::environment;
use crate::socket::stream::Stream;
use crate::tls::error::TlsError;
use crate::tls::verification;

/// Root certificates of the machine, read at the first use. Later changes need a restart.
static MACHINE: LazyLock<Arc<RootCertStore>> =
    LazyLock::new(|| Arc::new(verification::machine_roots()));

/// The certificates that a client accepts.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Certificates issued by an authority that this machine knows.
    #[default]
    Machine,
    /// Certificates in this PEM file, and certificates issued by an authority in it.
    File(PathBuf),
    /// Every certificate.
    Any,
}

/// Trusted certificates, and the name that a server must prove.
#[derive(Clone)]
pub struct ClientTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl ClientTls {
    /// Trusts the certificates in `authority` (PEM), or those of the machine. The server must prove `name`.
    pub fn new(name: &str, authority: Option<&Path>) -> Result<Self, TlsError> {
        Self::trusting(name, &authority.into())
    }

    /// Trusts the certificates of `trust`. The server must prove `name`, unless every certificate is accepted.
    pub fn trusting(name: &str, trust: &Trust) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let mut config = client_config(trust)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self::with(Arc::new(config), name))
    }

    /// Returns the same, offering these protocols by ALPN (RFC 7301), preferred first. [`ClientTls::new`] offers
    /// `http/1.1` only.
    pub fn offering(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(self.connector.config());
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Self::with(Arc::new(config), self.name.clone())
    }

    /// Uses an existing configuration. The server must prove `name`, if the configuration requires it.
    pub fn with(config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        Self {
            connector: config.into(),
            name,
        }
    }
}

impl From<Option<&Path>> for Trust {
    fn from(authority: Option<&Path>) -> Self {
        authority.map_or(Self::Machine, |file| Self::File(file.to_owned()))
    }
}

/// Builds a TLS client configuration that trusts the certificates in `authority` (PEM), or those of the machine.
pub fn trust(authority: Option<&Path>) -> Result<ClientConfig, TlsError> {
    client_config(&authority.into())
}

fn client_config(trust: &Trust) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let builder = match trust {
        Trust::Machine => builder.with_root_certificates(MACHINE.clone()),
        Trust::File(file) => builder
            .dangerous()
            .with_custom_certificate_verifier(verifier_of(file, provider)?),
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(verification::any_certificate(&provider)),
    };
    Ok(builder.with_no_client_auth())
}

fn verifier_of(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let wanted = "the certificates of those to trust";
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| TlsError::file(file, wanted, error))?;
    if certificates.is_empty() {
        return Err(TlsError::file(file, wanted, "no certificate in it"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates.clone() {
        roots.add(certificate)?;
    }
    verification::verifier(roots, certificates, provider)
        .map_err(|error| TlsError::file(file, wanted, error))
}

/// Connects to `address`, with TCP_NODELAY. Has no time limit of its own. In an environment, connects in its network.
pub async fn connect(address: SocketAddr, tls: Option<&ClientTls>) -> io::Result<Stream> {
    if let Some(environment) = environment::current() {
        return match tls {
            None => Ok(environment.connect(address).await?.into()),
            Some(_) => Err(io::Error::other("TLS is outside of a simulation")),
        };
    }
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    Ok(match tls {
        None => socket.into(),
        Some(tls) => {
            let stream = tls.connector.connect(tls.name.clone(), socket).await?;
            Box::new(TlsStream::from(stream)).into()
        }
    })
}

/// True if a server has rejected a connection because it speaks none of the offered protocols (RFC 7301, section 3.2).
pub fn lacks_common_protocol(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(
        cause,
        Some(rustls::Error::AlertReceived(
            AlertDescription::NoApplicationProtocol
        ))
    )
}

//! Connecting to another service, by TCP and, where asked, TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::stream::Stream;
use crate::tls::TlsError;

/// Whom the machine trusts, read at the first need and then kept: what is changed there counts from the next start on.
static MACHINE: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
});

/// Whom to trust, and which name a server must prove.
#[derive(Clone)]
pub struct ClientTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl ClientTls {
    /// Trusts the certificates in `authority` (PEM), or those of the machine; the server must prove `name`.
    pub fn new(name: &str, authority: Option<&Path>) -> Result<Self, TlsError> {
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let mut config = trust(authority)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            connector: Arc::new(config).into(),
            name,
        })
    }
}

/// A client's side of TLS that trusts the certificates in `authority` (PEM), or those of the machine.
pub fn trust(authority: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let roots = match authority {
        Some(file) => {
            let unreadable = |reason: String| TlsError::File {
                file: file.to_owned(),
                reason,
                wanted: "the certificates of those to trust",
            };
            let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(|error| unreadable(error.to_string()))?;
            if certificates.is_empty() {
                return Err(unreadable("no certificate in it".to_owned()));
            }
            let mut roots = RootCertStore::empty();
            for certificate in certificates {
                roots.add(certificate)?;
            }
            Arc::new(roots)
        }
        None => MACHINE.clone(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Connects to `address`, without delay for small packets. Has no time limit of its own.
pub async fn connect(address: SocketAddr, tls: Option<&ClientTls>) -> io::Result<Stream> {
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

//! TLS client on non-blocking sockets, with rustls.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_serve::verification;
use rustix::io::Errno;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, InvalidMessage};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cause::Cause;
use crate::exact;
use crate::target::without_brackets;
use crate::transport::socket;

/// Servers whose sessions are stored for resumption. rustls keeps up to eight tickets of each.
const SESSIONS: usize = 256;

/// Trusted certificates, the client's own, and the kind of handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// Accept any certificate.
    pub insecure: bool,
    /// The client's certificate chain.
    pub certificate: Option<PemFile>,
    /// Its private key.
    pub key: Option<PemFile>,
    /// Further trusted certificates of servers and authorities. The system's are trusted too.
    pub roots: Option<PemFile>,
    /// Resume sessions of earlier connections (RFC 8446, section 2.2). Without it each connection has a whole
    /// handshake, as that of a new client.
    pub resumption: bool,
}

/// The content of a PEM file, with its name for errors. The content is checked when TLS is set up.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PemFile {
    /// Path of the file.
    pub name: String,
    /// Its bytes.
    #[serde(with = "exact::base64")]
    pub bytes: Arc<[u8]>,
}

/// Reasons why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read as PEM.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        reason: Cause,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("--cert and --key go together: give both PEM files")]
    Incomplete,
    /// The error of rustls for the combination.
    #[error("tls: {0}")]
    Rustls(#[from] rustls::Error),
    /// TLS without the cipher suite of QUIC's first packets.
    #[error("tls: QUIC needs the cipher suite TLS13_AES_128_GCM_SHA256")]
    Quic,
    /// A host that is no valid TLS server name.
    #[error("{0:?} cannot be a TLS server name")]
    ServerName(String),
}

impl PemFile {
    /// Maximum length, far above that of all authorities of a system.
    pub const LONGEST: usize = 16 << 20;

    /// Reads a file of at most [`PemFile::LONGEST`] bytes.
    pub fn read(path: &Path) -> Result<Self, TlsError> {
        let failed = |error| TlsError::File {
            path: path.to_owned(),
            reason: pem::Error::Io(error).into(),
        };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        // One byte more shows that there are more.
        let mut start = file.take(Self::LONGEST as u64 + 1);
        start.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > Self::LONGEST {
            let message = format!("more than {} bytes", Self::LONGEST);
            return Err(failed(io::Error::other(message)));
        }
        Ok(Self {
            name: path.display().to_string(),
            bytes: bytes.into(),
        })
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(&self.bytes)
            .collect::<Result<_, _>>()
            .map_err(|error| self.failed(error.into()))?;
        if found.is_empty() {
            return Err(self.failed("no certificate in it".into()));
        }
        Ok(found)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|error| self.failed(error.into()))
    }

    fn failed(&self, reason: Cause) -> TlsError {
        TlsError::File {
            path: PathBuf::from(&self.name),
            reason,
        }
    }
}

impl fmt::Debug for PemFile {
    /// Writes the length of the content instead of the content, which may be a private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PemFile({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

impl TlsOptions {
    /// Creates the configuration shared by all connections of a run. `protocol` is its name in ALPN.
    pub(crate) fn config(&self, protocol: &[u8]) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let builder = match &self.roots {
            _ if self.insecure => builder
                .dangerous()
                .with_custom_certificate_verifier(verification::any_certificate(&provider)),
            Some(file) => builder
                .dangerous()
                .with_custom_certificate_verifier(verifier_of(file, provider)?),
            None => builder.with_root_certificates(verification::machine_roots()),
        };
        let mut config = match (&self.certificate, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(chain), Some(key)) => {
                builder.with_client_auth_cert(chain.certificates()?, key.private_key()?)?
            }
            _ => return Err(TlsError::Incomplete),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = if self.resumption {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        // Writes the keys of connections to the file that the variable SSLKEYLOGFILE names, if it is set.
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        Ok(Arc::new(config))
    }
}

/// Trusts the system's authorities and the certificates in `file`.
fn verifier_of(
    file: &PemFile,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let trusted = file.certificates()?;
    let mut roots = verification::machine_roots();
    roots.add_parsable_certificates(trusted.iter().cloned());
    verification::verifier(roots, trusted, provider)
        .map_err(|error| file.failed(format!("no certificate in it can be used: {error}").into()))
}

/// The name that the server's certificate must prove.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = without_brackets(host).to_owned();
    ServerName::try_from(bare.clone()).map_err(|_| TlsError::ServerName(bare))
}

/// Returns the error of a TLS stream, with the remedy if one is known.
pub(crate) fn with_remedy(error: io::Error) -> io::Error {
    error.downcast().map_or_else(|error| error, explained)
}

/// Returns an error of kind `InvalidData`, with the remedy if one is known.
fn explained(error: rustls::Error) -> io::Error {
    let message = match &error {
        rustls::Error::InvalidCertificate(reason) => rejected(&error, reason),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("{error}; give --cert FILE and --key FILE")
        }
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            format!("{error}; choose another with --http")
        }
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
        | rustls::Error::PeerIncompatible(_) => {
            format!("{error}; TLS 1.2 and 1.3 are offered")
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not answer with TLS; write http://".to_owned()
        }
        _ => return io::Error::new(io::ErrorKind::InvalidData, error),
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Describes a certificate that is not accepted, with the remedy.
fn rejected(error: &rustls::Error, reason: &CertificateError) -> String {
    use CertificateError as Reason;
    let remedy = match reason {
        Reason::NotValidForName
        | Reason::NotValidForNameContext { .. }
        | Reason::Expired
        | Reason::ExpiredContext { .. }
        | Reason::NotValidYet
        | Reason::NotValidYetContext { .. } => {
            "--ca FILE does not help against that; --insecure accepts any certificate"
        }
        _ => {
            "trust it, or the authority that issued it, with --ca FILE, or accept any certificate with --insecure"
        }
    };
    let found = match reason {
        Reason::UnknownIssuer | Reason::Other(_) => "no trusted authority has issued it: ",
        _ => "",
    };
    let error = match reason {
        Reason::Other(inner) => inner.to_string(),
        _ => error.to_string(),
    };
    let error = in_words(&error);
    format!("the server's certificate is refused: {found}{error}; {remedy}")
}

/// Writes the names of errors, such as `CaUsedAsEndEntity`, as words.
fn in_words(text: &str) -> String {
    let is_name = |word: &str| {
        word.chars().all(char::is_alphanumeric)
            && word.chars().skip(1).any(char::is_uppercase)
            && word.chars().any(char::is_lowercase)
    };
    let in_words = |word: &str| {
        let mut spaced = String::new();
        for (index, letter) in word.chars().enumerate() {
            if index > 0 && letter.is_uppercase() {
                spaced.push(' ');
            }
            spaced.extend(letter.to_lowercase());
        }
        spaced
    };
    let readable = text.split(' ').map(|word| {
        if is_name(word) {
            in_words(word)
        } else {
            word.to_owned()
        }
    });
    readable.collect::<Vec<_>>().join(" ")
}

/// One encrypted connection.
pub(crate) struct TlsStream(ClientConnection);

impl TlsStream {
    pub(crate) fn new(
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
    ) -> Result<Self, rustls::Error> {
        let mut client = ClientConnection::new(config.clone(), name.clone())?;
        // A request is passed as a whole, of any length. rustls would buffer only 64 kB of it.
        client.set_buffer_limit(None);
        Ok(Self(client))
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// The protocol that the server chose by ALPN.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.0.alpn_protocol()
    }

    /// True if bytes wait to be sent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    /// Queues bytes to be sent encrypted.
    pub(crate) fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Sends encrypted bytes, as many as the kernel accepts.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut PlainSocket(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads from the socket until it is empty or decrypted bytes are available. Returns false at its end.
    ///
    /// A failed handshake or record is an error of kind `InvalidData`.
    pub(crate) fn fill(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        let mut open = true;
        while open && self.0.wants_read() {
            match self.0.read_tls(&mut PlainSocket(socket)) {
                Ok(read) => open = read > 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            if let Err(error) = self.0.process_new_packets() {
                // The alert tells the peer the reason. Its arrival makes no difference here.
                let _ = self.flush(socket);
                return Err(explained(error));
            }
            // In a handshake rustls reads no further until its own part has been sent.
            self.flush(socket)?;
        }
        Ok(open)
    }

    /// Reads decrypted bytes. `WouldBlock` only if the socket is empty, 0 at a clean end.
    ///
    /// Errors as in [`TlsStream::fill`].
    pub(crate) fn receive(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        self.fill(socket)?;
        self.0.reader().read(buffer)
    }
}

struct PlainSocket<'s>(&'s OwnedFd);

impl io::Read for PlainSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        socket::receive(self.0, buffer).map_err(Errno::into)
    }
}

impl io::Write for PlainSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        socket::send(self.0, bytes).map_err(Errno::into)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_errors_become_words() {
        let message = in_words("invalid peer certificate: CaUsedAsEndEntity");
        assert_eq!(message, "invalid peer certificate: ca used as end entity");
        assert_eq!(
            in_words("certificate of DNS name a.B"),
            "certificate of DNS name a.B"
        );
    }

    #[test]
    fn failures_of_handshakes_name_the_remedy() {
        let alerts = [
            (AlertDescription::CertificateRequired, "--cert FILE"),
            (AlertDescription::NoApplicationProtocol, "--http"),
            (AlertDescription::ProtocolVersion, "TLS 1.2 and 1.3"),
        ];
        for (alert, remedy) in alerts {
            let message = explained(rustls::Error::AlertReceived(alert)).to_string();
            assert!(message.contains(remedy), "{message}");
        }
    }
}

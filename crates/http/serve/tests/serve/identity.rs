//! Certificates by server name, and certificates of clients.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_serve::verification::any_certificate;
use posthaste_serve::{
    Certificate, ClientAuthority, HttpServer, RunningServer, ServerTls, TlsError, TlsSettings,
    listen,
};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, StreamOwned};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::proxying::Reporting;
use crate::{connect, eventually};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// A certificate with its key, and their files.
struct KeyedCertificate {
    der: CertificateDer<'static>,
    key: KeyPair,
    files: [PathBuf; 2],
}

impl KeyedCertificate {
    /// Writes a certificate and its key to `folder`.
    fn write(folder: &Path, name: &str, certificate: &rcgen::Certificate, key: KeyPair) -> Self {
        let files = ["cert", "key"].map(|kind| folder.join(format!("{name}-{kind}.pem")));
        std::fs::write(&files[0], certificate.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        Self {
            der: certificate.der().clone(),
            key,
            files,
        }
    }

    /// A self-signed certificate for `names`.
    fn for_names(folder: &Path, file: &str, names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let made = params(names).self_signed(&key).unwrap();
        Self::write(folder, file, &made, key)
    }

    fn read(&self) -> Certificate {
        Certificate::read(&self.files[0], &self.files[1]).unwrap()
    }

    /// The certificate and the key as a client's.
    fn of_client(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        (vec![self.der.clone()], key)
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    CertificateParams::new(names).unwrap()
}

/// An authority of clients.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let mut wanted = params(&[]);
        wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let made = wanted.self_signed(&key).unwrap();
        let file = folder.join(format!("{name}.pem"));
        std::fs::write(&file, made.pem()).unwrap();
        let issuer = Issuer::new(wanted, key);
        Self { issuer, file }
    }

    /// A certificate of a client, valid until the end of `year`.
    fn issue(&self, folder: &Path, name: &str, year: i32) -> KeyedCertificate {
        let mut wanted = params(&[name]);
        wanted.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let made = wanted.signed_by(&key, &self.issuer).unwrap();
        KeyedCertificate::write(folder, name, &made, key)
    }
}

fn server(settings: TlsSettings) -> (RunningServer, Arc<ServerTls>) {
    let tls = Arc::new(ServerTls::with(settings));
    let server = HttpServer {
        tls: Some(tls.clone()),
        ..HttpServer::default()
    };
    let listener = listen(([127, 0, 0, 1], 0).into(), 64).unwrap();
    (server.start(listener, |_| Reporting).unwrap(), tls)
}

/// A client that accepts every certificate of a server, with a certificate of its own.
fn client(own: Option<&KeyedCertificate>) -> ClientConfig {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(any_certificate(&provider));
    match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let (chain, key) = own.of_client();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

type Connection = StreamOwned<ClientConnection, std::net::TcpStream>;

fn open(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Connection {
    let name = name.to_owned().try_into().unwrap();
    let session = ClientConnection::new(config.clone(), name).unwrap();
    StreamOwned::new(session, connect(address))
}

/// Exchanges one request. An error stands for a rejected handshake.
fn ask(connection: &mut Connection) -> io::Result<String> {
    connection.write_all(REQUEST.as_bytes())?;
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match connection.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => reply.extend_from_slice(&piece[..length]),
            Err(_) if !reply.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    if reply.is_empty() {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }
}

/// The certificate that the server presents for a name.
fn presented(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &str,
) -> CertificateDer<'static> {
    let mut connection = open(address, config, name);
    ask(&mut connection).unwrap();
    connection.conn.peer_certificates().unwrap()[0].clone()
}

#[test]
fn the_certificate_is_that_of_the_server_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = KeyedCertificate::for_names(folder, "first", &["first.example"]);
    let wild = KeyedCertificate::for_names(folder, "wild", &["*.Shop.example", "shop.example"]);
    let exact = KeyedCertificate::for_names(folder, "exact", &["www.shop.example"]);
    let again = KeyedCertificate::for_names(folder, "again", &["first.example", "again.example"]);
    let others = [wild.read(), exact.read(), again.read()];
    let settings = TlsSettings::new(first.read(), &others, None).unwrap();
    let (running, _) = server(settings);
    let config = Arc::new(client(None));
    for (name, expected) in [
        ("first.example", &first),
        ("again.example", &again),
        ("other.example", &first),
        ("shop.example", &wild),
        ("SHOP.example", &wild),
        ("api.shop.example", &wild),
        ("API.SHOP.EXAMPLE", &wild),
        ("www.shop.example", &exact),
        // A wildcard stands for one label.
        ("a.b.shop.example", &first),
        ("example", &first),
        ("127.0.0.1", &first),
    ] {
        assert!(
            presented(running.addr, &config, name) == expected.der,
            "{name}"
        );
    }
    let mut silent = client(None);
    silent.enable_sni = false;
    let silent = presented(running.addr, &Arc::new(silent), "www.shop.example");
    assert!(silent == first.der);
}

/// With several certificates for one name, a client gets one that it can verify.
#[test]
fn the_certificate_has_a_key_that_the_client_knows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = KeyedCertificate::for_names(folder, "first", &["shop.example"]);
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let made = params(&["shop.example"]).self_signed(&key).unwrap();
    let second = KeyedCertificate::write(folder, "second", &made, key);
    let settings = TlsSettings::new(first.read(), &[second.read()], None).unwrap();
    let (running, _) = server(settings);
    let mut provider = default_provider();
    let algorithms = &mut provider.signature_verification_algorithms;
    let mapping = algorithms.mapping.iter();
    let ed25519 = mapping.filter(|(scheme, _)| *scheme == rustls::SignatureScheme::ED25519);
    algorithms.mapping = ed25519.copied().collect::<Vec<_>>().leak();
    let mut modern = client(None);
    let verifier = any_certificate(&provider);
    modern.dangerous().set_certificate_verifier(verifier);
    for (config, expected) in [(modern, &second), (client(None), &first)] {
        let shown = presented(running.addr, &Arc::new(config), "shop.example");
        assert!(shown == expected.der);
    }
}

#[test]
fn a_further_certificate_has_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let first = KeyedCertificate::for_names(folder.path(), "first", &["127.0.0.1"]);
    assert!(first.read().names().is_empty());
    let other = KeyedCertificate::for_names(folder.path(), "other", &["192.0.2.7"]);
    let error = TlsSettings::new(first.read(), &[other.read()], None).unwrap_err();
    assert!(matches!(error, TlsError::Nameless(_)), "{error}");
    assert!(error.to_string().contains("other-cert.pem"), "{error}");
}

#[test]
fn clients_without_a_valid_certificate_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = KeyedCertificate::for_names(folder, "own", &["localhost"]);
    let (authority, stranger) = (
        Authority::new(folder, "authority"),
        Authority::new(folder, "stranger"),
    );
    let good = authority.issue(folder, "good", 4000);
    let expired = authority.issue(folder, "expired", 2001);
    let foreign = stranger.issue(folder, "foreign", 4000);
    for (is_optional, refused) in [
        (
            false,
            vec![None, Some(&expired), Some(&foreign), Some(&own)],
        ),
        (true, vec![Some(&expired), Some(&foreign), Some(&own)]),
    ] {
        let clients = ClientAuthority::read(&authority.file, is_optional).unwrap();
        let settings = TlsSettings::new(own.read(), &[], Some(clients)).unwrap();
        let (running, _) = server(settings);
        let ask = |made| {
            ask(&mut open(
                running.addr,
                &Arc::new(client(made)),
                "localhost",
            ))
        };
        let reply = ask(Some(&good)).unwrap();
        let encoded = reply.split_once("certificate :").unwrap().1;
        let encoded = encoded.strip_suffix(':').unwrap();
        use base64::Engine as _;
        let sent = base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .unwrap();
        assert!(sent == good.der.as_ref(), "{reply}");
        if is_optional {
            let reply = ask(None).unwrap();
            assert!(reply.ends_with("certificate none"), "{reply}");
        }
        for (made, count) in refused.into_iter().zip(1..) {
            ask(made).unwrap_err();
            eventually("the count", || {
                running.counters.snapshot().client_certificate_failures == count
            });
        }
        assert_eq!(running.counters.snapshot().tls_failures, 0);
    }
}

#[test]
fn an_authority_is_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let own = KeyedCertificate::for_names(folder.path(), "own", &["localhost"]);
    for file in [own.files[1].clone(), folder.path().join("missing.pem")] {
        let error = ClientAuthority::read(&file, false).unwrap_err().to_string();
        assert!(error.contains("authorities"), "{error}");
        assert!(error.contains(file.to_str().unwrap()), "{error}");
    }
}

/// A resumed session has no look at the certificate, so there are none where clients are verified.
#[test]
fn tls_sessions_resume_unless_clients_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = KeyedCertificate::for_names(folder, "own", &["localhost"]);
    let authority = Authority::new(folder, "authority");
    let good = authority.issue(folder, "good", 4000);
    let open_settings = || TlsSettings::new(own.read(), &[], None).unwrap();
    let (running, tls) = server(open_settings());
    let config = Arc::new(client(Some(&good)));
    let kind = || {
        let mut connection = open(running.addr, &config, "localhost");
        ask(&mut connection).unwrap();
        connection.conn.handshake_kind().unwrap()
    };
    assert_eq!(kind(), HandshakeKind::Full);
    assert_eq!(kind(), HandshakeKind::Resumed);
    tls.present(open_settings());
    assert_eq!(kind(), HandshakeKind::Resumed);
    let clients = ClientAuthority::read(&authority.file, false).unwrap();
    tls.present(TlsSettings::new(own.read(), &[], Some(clients)).unwrap());
    for _ in 0..3 {
        assert_eq!(kind(), HandshakeKind::Full);
    }
}

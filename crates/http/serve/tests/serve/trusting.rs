//! Clients and the certificates that they trust, over a real socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posthaste_serve::verification::is_certificate_refused;
use posthaste_serve::{Certificate, ClientTls, HttpServer, RunningServer, ServerTls, Trust};

use crate::start;

/// A server with a self-signed localhost certificate that declares itself an authority, and the certificate's path.
fn server(folder: &Path) -> (RunningServer, PathBuf) {
    let mut wanted = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = wanted.self_signed(&key).unwrap();
    let (certificate, key_file) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let tls = ServerTls::new(Certificate::read(&certificate, &key_file).unwrap()).unwrap();
    let server = HttpServer {
        tls: Some(Arc::new(tls)),
        ..HttpServer::default()
    };
    (start(server, 16), certificate)
}

/// Connects as `name` with `trust`.
fn connected(running: &RunningServer, name: &str, trust: &Trust) -> io::Result<()> {
    let tls = ClientTls::trusting(name, trust).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connection = posthaste_serve::connect(running.addr, Some(&tls));
    runtime.block_on(connection).map(drop)
}

#[test]
fn a_certificate_is_trusted_by_file_or_not_looked_at() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [(running, certificate), (_other, others)] =
        folders.each_ref().map(|folder| server(folder.path()));
    connected(&running, "localhost", &Trust::File(certificate.clone())).unwrap();
    for name in ["localhost", "elsewhere.example"] {
        connected(&running, name, &Trust::Any).unwrap();
    }
    for (name, trust) in [
        ("elsewhere.example", Trust::File(certificate)),
        ("localhost", Trust::File(others)),
        ("localhost", Trust::Machine),
    ] {
        let error = connected(&running, name, &trust).unwrap_err();
        assert!(is_certificate_refused(&error), "{name}, {trust:?}: {error}");
    }
}

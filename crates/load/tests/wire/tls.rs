//! HTTPS with certificates made here: trusted, untrusted, and a server that speaks none.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_load::{Outcome, TlsOptions};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{carried_out, ok, plan, read_request, serve};

struct Server {
    address: SocketAddr,
    certificate: tempfile::NamedTempFile,
}

fn server() -> Server {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let address = serve(move |stream| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while read_request(&mut stream) {
            if stream.write_all(ok("secret").as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut certificate = tempfile::NamedTempFile::new().unwrap();
    certificate.write_all(made.cert.pem().as_bytes()).unwrap();
    Server {
        address,
        certificate,
    }
}

fn outcome_with(server: &Server, tls: TlsOptions) -> Outcome {
    let mut plan = plan(server.address, 100.0, 100);
    plan.requests[0].url = format!("https://localhost:{}/", server.address.port());
    plan.resolve = vec![
        format!("localhost:{}:127.0.0.1", server.address.port())
            .parse()
            .unwrap(),
    ];
    plan.timeout = posthaste_units::Span::from_secs(5);
    plan.tls = tls;
    let run = carried_out(&plan);
    let (outcome, count) = run.outcomes.iter().max_by_key(|(_, count)| *count).unwrap();
    assert_eq!(count, 10, "{:?} {:?}", run.outcomes, run.reasons);
    outcome
}

#[test]
fn only_a_trusted_certificate_is_accepted() {
    let server = server();
    assert_eq!(
        outcome_with(&server, TlsOptions::default()),
        Outcome::TlsFailed
    );
    let insecure = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    assert_eq!(outcome_with(&server, insecure), Outcome::Ok);
    let roots = Some(server.certificate.path().to_owned());
    let trusted = TlsOptions {
        roots,
        ..TlsOptions::default()
    };
    assert_eq!(outcome_with(&server, trusted), Outcome::Ok);
}

#[test]
fn a_server_without_tls_fails_the_handshake() {
    let address = serve(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let plain = Server {
        address,
        certificate: tempfile::NamedTempFile::new().unwrap(),
    };
    assert_eq!(
        outcome_with(&plain, TlsOptions::default()),
        Outcome::TlsFailed
    );
}

//! HTTPS with certificates made here: trusted, untrusted, and a server that speaks none.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_load::{Connections, Outcome, RequestSpec, TlsOptions};
use posthaste_units::Span;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{carried_out, ok, plan, read_request, serve};

struct Server {
    address: SocketAddr,
    certificate: tempfile::NamedTempFile,
}

fn server() -> Server {
    serving(["localhost".to_owned()], 0, ok("secret"))
}

/// A server with a certificate for `names` that reads requests with a body of `length` bytes,
/// and answers each with `reply`.
fn serving(names: impl Into<Vec<String>>, length: u64, reply: String) -> Server {
    let made = rcgen::generate_simple_self_signed(names).unwrap();
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
        stream.set_nodelay(true).unwrap();
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while read_request(&mut stream) {
            let mut body = std::io::Read::by_ref(&mut stream).take(length);
            let _ = std::io::copy(&mut body, &mut std::io::sink());
            if stream.write_all(reply.as_bytes()).is_err() {
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
    outcome_of(RequestSpec::get(""), server, tls)
}

fn outcome_of(request: RequestSpec, server: &Server, tls: TlsOptions) -> Outcome {
    let mut plan = plan(server.address, 100.0, 100);
    plan.requests = vec![request];
    plan.requests[0].url = format!("https://localhost:{}/", server.address.port());
    plan.resolve = vec![
        format!("localhost:{}:127.0.0.1", server.address.port())
            .parse()
            .unwrap(),
    ];
    plan.timeout = posthaste_units::Span::from_secs(60);
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

/// What TLS sends in several records does not wait for an acknowledgement that is delayed by 40 ms.
#[test]
fn a_new_connection_each_time_costs_no_delayed_acknowledgement() {
    let server = server();
    let mut plan = plan(server.address, 50.0, 400);
    plan.connections = Connections::New;
    plan.requests[0].url = format!("https://{}/", server.address);
    plan.tls.insecure = true;
    let median = || {
        let run = carried_out(&plan);
        assert_eq!(run.outcomes[Outcome::Ok], 20, "{:?}", run.reasons);
        run.service.histogram().quantile(0.5)
    };
    // A busy machine delays as well, but not always.
    let quick = (1..=20).any(|number| {
        let median = median();
        println!("try {number} of 20: {median} in the median");
        median < Span::from_millis(35)
    });
    assert!(quick, "never below 35 ms");
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

/// More than rustls takes in at once, on every way: a certificate of 20 kB, a reply and a
/// request of 1 MB. What it leaves in the socket or the buffer is not reported again.
#[test]
fn large_certificates_replies_and_requests_arrive_whole() {
    let names: Vec<String> = (0..600)
        .map(|number| format!("name-{number}.of-this-server.example"))
        .chain(["localhost".to_owned()])
        .collect();
    let large = "x".repeat(1_000_000);
    let server = serving(names, large.len() as u64, ok(&large));
    let insecure = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    let request = RequestSpec::post("", "text/plain", large);
    assert_eq!(outcome_of(request, &server, insecure), Outcome::Ok);
}

//! HTTPS with certificates made here: trusted, untrusted, and a server without TLS.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_load::{
    Connections, Data, Outcome, PemFile, Plan, RequestSpec, TlsOptions, WsdlCall,
};
use posthaste_units::Span;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa};
use rustls::pki_types::PrivateKeyDer;
use rustls::{
    ALL_VERSIONS as ALL, HandshakeKind, ServerConfig, ServerConnection, StreamOwned,
    SupportedProtocolVersion,
};

use crate::server::{carried_out, ok, plan, read_request, serve};

struct TlsServer {
    address: SocketAddr,
    certificate: tempfile::NamedTempFile,
    /// Handshakes that resumed a session.
    resumed: Arc<AtomicU64>,
}

fn server() -> TlsServer {
    serving(["localhost".to_owned()], 0, ok("secret"))
}

/// Starts a server with a certificate for `names` that reads requests with a body of `length` bytes and answers each
/// with `reply`.
fn serving(names: impl Into<Vec<String>>, length: u64, reply: String) -> TlsServer {
    let wanted = rcgen::CertificateParams::new(names).unwrap();
    showing(&wanted, ALL, length, reply)
}

/// The same with these parameters of the certificate and these versions of TLS.
fn showing(
    wanted: &CertificateParams,
    versions: &[&'static SupportedProtocolVersion],
    length: u64,
    reply: String,
) -> TlsServer {
    let key = rcgen::KeyPair::generate().unwrap();
    let made = wanted.self_signed(&key).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let resumed = Arc::new(AtomicU64::new(0));
    let counter = resumed.clone();
    let address = serve(move |stream| {
        stream.set_nodelay(true).unwrap();
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while read_request(&mut stream) {
            if stream.conn.handshake_kind() == Some(HandshakeKind::Resumed) {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            let mut body = std::io::Read::by_ref(&mut stream).take(length);
            let _ = std::io::copy(&mut body, &mut std::io::sink());
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut certificate = tempfile::NamedTempFile::new().unwrap();
    certificate.write_all(made.pem().as_bytes()).unwrap();
    TlsServer {
        address,
        certificate,
        resumed,
    }
}

fn outcome_with(server: &TlsServer, tls: TlsOptions) -> Outcome {
    outcome_of(RequestSpec::get(""), server, tls)
}

fn outcome_of(request: RequestSpec, server: &TlsServer, tls: TlsOptions) -> Outcome {
    ended(request, server, tls).0
}

/// Runs requests and returns their outcome and reason.
fn ended(request: RequestSpec, server: &TlsServer, tls: TlsOptions) -> (Outcome, String) {
    let plan = https_plan(request, server, tls);
    let run = carried_out(&plan);
    let (outcome, count) = run.outcomes.iter().max_by_key(|(_, count)| *count).unwrap();
    assert_eq!(count, 10, "{:?} {:?}", run.outcomes, run.reasons);
    (outcome, format!("{:?}", run.reasons))
}

/// Ten requests on HTTPS.
fn https_plan(request: RequestSpec, server: &TlsServer, tls: TlsOptions) -> Plan {
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
    plan
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
    let roots = Some(PemFile::read(server.certificate.path()).unwrap());
    let trusted = TlsOptions {
        roots,
        ..TlsOptions::default()
    };
    assert_eq!(outcome_with(&server, trusted), Outcome::Ok);
}

/// Each connection is that of a new client, for whom the server signs.
#[test]
fn sessions_are_resumed_with_the_option_only() {
    for version in ALL {
        let wanted = CertificateParams::new(["localhost".to_owned()]).unwrap();
        for resumption in [false, true] {
            let server = showing(&wanted, &[version], 0, ok("secret"));
            let options = TlsOptions {
                insecure: true,
                resumption,
                ..TlsOptions::default()
            };
            let mut plan = https_plan(RequestSpec::get(""), &server, options);
            plan.connections = Connections::New;
            plan.connect_timeout = Span::from_secs(10);
            let run = carried_out(&plan);
            assert_eq!(run.outcomes[Outcome::Ok], 10, "{:?}", run.reasons);
            let resumed = server.resumed.load(Ordering::Relaxed);
            // The first connections have no ticket yet.
            assert_eq!(resumed > 0, resumption, "{version:?}: {resumed} of 10");
        }
    }
}

/// The default certificate of `openssl req -x509`: self-signed and marked as an authority.
fn authority(name: &str) -> CertificateParams {
    let mut wanted = CertificateParams::new([name.to_owned()]).unwrap();
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    wanted
}

/// The same without alternative names: the name is the subject's.
fn named_by_subject(name: &str) -> CertificateParams {
    let mut wanted = authority(name);
    wanted.subject_alt_names.clear();
    wanted.distinguished_name = rcgen::DistinguishedName::new();
    wanted.distinguished_name.push(DnType::CommonName, name);
    wanted
}

/// Returns the outcome of requests if the server shows such a certificate and exactly this one is trusted.
fn trusted_itself(
    wanted: &CertificateParams,
    versions: &[&'static SupportedProtocolVersion],
) -> (Outcome, String) {
    let server = showing(wanted, versions, 0, ok("secret"));
    let trusted = TlsOptions {
        roots: Some(PemFile::read(server.certificate.path()).unwrap()),
        ..TlsOptions::default()
    };
    ended(RequestSpec::get(""), &server, trusted)
}

#[test]
fn any_trusted_self_signed_certificate_is_accepted() {
    let mut client_too = authority("localhost");
    client_too.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    for wanted in [
        authority("localhost"),
        named_by_subject("localhost"),
        named_by_subject("LocalHost"),
        client_too,
    ] {
        for versions in [ALL, &[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
            let (outcome, reason) = trusted_itself(&wanted, versions);
            assert_eq!(outcome, Outcome::Ok, "{wanted:?}: {reason}");
        }
    }
}

/// A trusted certificate is still checked for its name, its dates and its purpose.
#[test]
fn a_trusted_certificate_must_fit_in_all_the_rest() {
    let changed = |change: &dyn Fn(&mut CertificateParams)| {
        let mut wanted = authority("localhost");
        change(&mut wanted);
        wanted
    };
    let cases = [
        ("another name", authority("elsewhere.example")),
        ("the names below", authority("*.localhost")),
        ("another address", authority("127.0.0.1")),
        ("another subject", named_by_subject("elsewhere.example")),
        (
            "the subject's name where there are others",
            changed(&|wanted| {
                *wanted = authority("elsewhere.example");
                wanted.distinguished_name = rcgen::DistinguishedName::new();
                wanted
                    .distinguished_name
                    .push(DnType::CommonName, "localhost");
            }),
        ),
        (
            "expired",
            changed(&|wanted| wanted.not_after = rcgen::date_time_ymd(2020, 1, 1)),
        ),
        (
            "not valid yet",
            changed(&|wanted| wanted.not_before = rcgen::date_time_ymd(4000, 1, 1)),
        ),
        (
            "for clients only",
            changed(&|wanted| {
                wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }),
        ),
    ];
    for (case, wanted) in cases {
        let (outcome, reason) = trusted_itself(&wanted, ALL);
        assert_eq!(outcome, Outcome::TlsFailed, "{case}: {reason}");
        for option in ["--ca", "--insecure"] {
            assert!(reason.contains(option), "{case}: {reason}");
        }
    }
}

#[test]
fn a_certificate_with_another_key_is_not_the_trusted_one() {
    let server = showing(&authority("localhost"), ALL, 0, ok("secret"));
    let other = showing(&authority("localhost"), ALL, 0, ok("secret"));
    let trusted = TlsOptions {
        roots: Some(PemFile::read(other.certificate.path()).unwrap()),
        ..TlsOptions::default()
    };
    let (outcome, reason) = ended(RequestSpec::get(""), &server, trusted);
    assert_eq!(outcome, Outcome::TlsFailed, "{reason}");
    assert!(reason.contains("with --ca FILE"), "{reason}");
    assert!(reason.contains("--insecure"), "{reason}");
}

#[test]
fn errors_of_a_file_name_it() {
    let server = server();
    let pem = |bytes: &[u8]| PemFile {
        name: "keys/some.pem".to_owned(),
        bytes: bytes.into(),
    };
    let error = |tls: TlsOptions| {
        let mut plan = plan(server.address, 100.0, 100);
        plan.requests[0].url = format!("https://{}/", server.address);
        plan.tls = tls;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let run = posthaste_load::run(&plan, &stop, &mut ());
        run.err().map(|error| error.to_string())
    };
    let roots = |bytes| TlsOptions {
        roots: Some(pem(bytes)),
        ..TlsOptions::default()
    };
    let empty = error(roots(b""));
    assert_eq!(empty.unwrap(), "keys/some.pem: no certificate in it");
    let cut = error(roots(b"-----BEGIN CERTIFICATE-----\nAAAA\n")).unwrap();
    assert!(cut.starts_with("keys/some.pem: "), "{cut}");
    let own = PemFile::read(server.certificate.path()).unwrap();
    let without_key = TlsOptions {
        certificate: Some(own.clone()),
        ..TlsOptions::default()
    };
    assert!(error(without_key).unwrap().contains("--cert and --key"));
    let with_wrong_key = TlsOptions {
        certificate: Some(own),
        key: Some(pem(b"none")),
        ..TlsOptions::default()
    };
    let message = error(with_wrong_key).unwrap();
    assert!(message.starts_with("keys/some.pem: "), "{message}");
    let absent = PemFile::read(std::path::Path::new("no/such.pem")).unwrap_err();
    let message = absent.to_string();
    assert!(
        message.starts_with("no/such.pem: I/O error: No such file"),
        "{message}"
    );
    let shown = format!("{:?}", pem(b"secret"));
    assert_eq!(shown, "PemFile(\"keys/some.pem\", 6 bytes)");
}

/// A WSDL is fetched before the run, by other code, with the same trusted certificates.
#[test]
fn descriptions_from_untrusted_servers_name_the_remedies() {
    let server = server();
    let wsdl = format!("https://{}/?wsdl", server.address);
    let wanted = WsdlCall {
        source: &wsdl,
        operation: "Any",
        version: None,
        endpoint: None,
    };
    let error = wanted.request(&Data::none(), &[], &TlsOptions::default());
    let message = error.unwrap_err().to_string();
    for option in ["--ca", "--insecure"] {
        assert!(message.contains(option), "{message}");
    }
}

/// TLS sends several records. They must not wait for an acknowledgement delayed by 40 ms.
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
    // A busy machine delays too, but not always.
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
    let plain = TlsServer {
        address,
        certificate: tempfile::NamedTempFile::new().unwrap(),
        resumed: Arc::default(),
    };
    let (outcome, reasons) = ended(RequestSpec::get(""), &plain, TlsOptions::default());
    assert_eq!(outcome, Outcome::TlsFailed);
    assert!(reasons.contains("write http://"), "{reasons}");
}

/// More than rustls buffers at once, in every direction: a certificate of 20 kB, a reply and a request of 1 MB. Bytes
/// left in the socket or the buffer are not reported again.
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

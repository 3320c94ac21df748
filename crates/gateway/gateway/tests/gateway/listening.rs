//! Connections of clients: plain HTTP next to HTTPS, certificates by name and of clients, the PROXY protocol.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use posthaste_gateway::{GatewayError, RunningGateway, start};
use posthaste_serve::verification::any_certificate;
use posthaste_serve::{ClientTls, connect};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tokio::task::spawn_local;

use crate::http2_support::{LocalExecutor, block_on};
use crate::support::{OK, PATIENCE, TestClient, TestOrigin, config, field, wait_until};
use crate::watching::{fetch_admin, value};

/// A folder with certificates, keys and authorities, and the key of the authority.
struct CertificateFolder {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
struct ClientCertificate {
    der: CertificateDer<'static>,
    key: KeyPair,
}

impl CertificateFolder {
    /// Creates certificates for `first.example` and `shop.example`, and an authority of clients.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = CertificateParams::new(Vec::new()).unwrap();
        wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let made = wanted.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("authority.pem"), made.pem()).unwrap();
        let issuer = Issuer::new(wanted, key);
        let folder = Self { folder, issuer };
        folder.renew("first");
        folder.renew("shop");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a new certificate for NAME.example.
    fn renew(&self, name: &str) -> CertificateDer<'static> {
        let names = vec![format!("{name}.example")];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let write = |kind: &str, text: String| {
            std::fs::write(self.path(&format!("{name}-{kind}.pem")), text).unwrap();
        };
        write("cert", made.cert.pem());
        write("key", made.signing_key.serialize_pem());
        made.cert.der().clone()
    }

    /// A certificate of a client.
    fn issue(&self) -> ClientCertificate {
        let wanted = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let der = wanted.signed_by(&key, &self.issuer).unwrap().der().clone();
        ClientCertificate { der, key }
    }

    /// `[tls]` with the certificate of `first`, and `more`.
    fn tls(&self, more: &str) -> String {
        let (cert, key) = (self.path("first-cert.pem"), self.path("first-key.pem"));
        format!("[tls]\ncertificate = {cert:?}\nkey = {key:?}\n{more}\n")
    }

    /// A further certificate of `[tls]`.
    fn further(&self, name: &str) -> String {
        let file = |kind: &str| self.path(&format!("{name}-{kind}.pem"));
        let (cert, key) = (file("cert"), file("key"));
        format!("[[tls.certificates]]\ncertificate = {cert:?}\nkey = {key:?}\n")
    }

    fn client_ca(&self, auth: &str) -> String {
        let authority = self.path("authority.pem");
        format!("client_ca = {authority:?}\nclient_auth = \"{auth}\"")
    }
}

/// `[http]` in this mode.
fn plain(mode: &str) -> String {
    format!("[http]\nlisten = \"127.0.0.1:0\"\nmode = \"{mode}\"\n")
}

/// A client that accepts every certificate of a server, with a certificate of its own.
fn client(own: Option<&ClientCertificate>) -> ClientConfig {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(any_certificate(&provider));
    let Some(own) = own else {
        return builder.with_no_client_auth();
    };
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let chain = vec![own.der.clone()];
    builder.with_client_auth_cert(chain, key).unwrap()
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// Opens a connection for a server name, after `header`.
fn secured(
    address: SocketAddr,
    own: Option<&ClientCertificate>,
    name: &str,
    header: &str,
) -> Secured {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(header.as_bytes()).unwrap();
    let name = name.to_owned().try_into().unwrap();
    let session = ClientConnection::new(Arc::new(client(own)), name).unwrap();
    StreamOwned::new(session, stream)
}

/// Sends a request and reads the status. `None` without a reply.
fn status(stream: &mut Secured, request: &str) -> Option<u16> {
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = Vec::new();
    // The whole reply of the upstream, or the head of another one.
    while !reply.ends_with(b"\r\n\r\nok") {
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(length @ 1..) => reply.extend_from_slice(&piece[..length]),
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&reply).into_owned();
    text.split(' ').nth(1)?.parse().ok()
}

fn request(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: s\r\n{fields}\r\n")
}

/// The certificate that a connection got.
fn shown(stream: &mut Secured) -> CertificateDer<'static> {
    assert_eq!(status(stream, &request("")), Some(200));
    stream.conn.peer_certificates().unwrap()[0].clone()
}

/// One request over HTTP/2, with TLS if a name is given.
fn over_http2(
    address: SocketAddr,
    tls: Option<(&str, Option<&ClientCertificate>)>,
    request: Request<Empty<Bytes>>,
) -> Response<Bytes> {
    let tls = tls.map(|(name, own)| {
        let mut config = client(own);
        config.alpn_protocols = vec![b"h2".to_vec()];
        ClientTls::with(Arc::new(config), name.to_owned().try_into().unwrap())
    });
    block_on(async {
        let stream = connect(address, tls.as_ref()).await.unwrap();
        let handshake = http2::handshake(LocalExecutor, TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        spawn_local(connection);
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    })
}

fn get(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url).body(Empty::new()).unwrap()
}

fn last_field(origin: &TestOrigin, name: &str) -> Option<String> {
    let request = origin.last_request().to_lowercase();
    field(&request, name).map(str::to_owned)
}

fn count(gateway: &RunningGateway, metric: &str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    value(&text, &format!("posthaste_gateway_{metric}"))
}

#[test]
fn plain_requests_are_redirected_to_the_same_url_with_https() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("redirect") + &folder.tls("");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let (http, port) = (gateway.http_addr.unwrap(), gateway.addr.port());
    let mut redirected = 0.0;
    for (request, location) in [
        (
            "GET / HTTP/1.1\r\nHost: shop.example",
            "https://shop.example:PORT/",
        ),
        (
            "GET /a%20b?c=//d HTTP/1.1\r\nHost: shop.example:8080",
            "https://shop.example:PORT/a%20b?c=//d",
        ),
        (
            "HEAD / HTTP/1.1\r\nHost: [2001:db8::7]:80",
            "https://[2001:db8::7]:PORT/",
        ),
        ("GET / HTTP/1.1\r\nHost: [::1]", "https://[::1]:PORT/"),
        (
            "GET / HTTP/1.0\r\nHost: shop.example",
            "https://shop.example:PORT/",
        ),
        (
            "OPTIONS * HTTP/1.1\r\nHost: shop.example",
            "https://shop.example:PORT",
        ),
        (
            "GET http://shop.example/a HTTP/1.1\r\nHost: shop.example",
            "https://shop.example:PORT/a",
        ),
        (
            "GET //elsewhere.example/ HTTP/1.1\r\nHost: shop.example",
            "https://shop.example:PORT//elsewhere.example/",
        ),
        (
            "POST /a HTTP/1.1\r\nContent-Length: 5\r\nHost: shop.example",
            "https://shop.example:PORT/a",
        ),
        (
            "GET /.well-known/wsqos HTTP/1.1\r\nHost: s",
            "https://s:PORT/.well-known/wsqos",
        ),
    ] {
        let mut client = TestClient::to(http);
        let reply = client
            .send(format!("{request}\r\n\r\n"))
            .reply(request.starts_with("HEAD"));
        let reply = reply.unwrap();
        assert_eq!(reply.status, 308, "{request}");
        let location = location.replace("PORT", &port.to_string());
        assert_eq!(field(&reply.head, "location"), Some(&*location));
        redirected += 1.0;
    }
    let reply = over_http2(http, None, get("http://shop.example/a?b"));
    assert_eq!(reply.status(), 308);
    let location = format!("https://shop.example:{port}/a?b");
    assert_eq!(reply.headers()["location"], location);
    assert_eq!(count(&gateway, "redirected_total"), redirected + 1.0);
    assert_eq!(origin.request_count(), 0);
}

#[test]
fn a_plain_request_without_a_host_cannot_be_redirected() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("redirect") + &folder.tls("");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let http = gateway.http_addr.unwrap();
    for request in [
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
    ] {
        let reply = TestClient::to(http).send(request).reply(false).unwrap();
        assert_eq!(reply.status, 400, "{request}");
        assert_eq!(field(&reply.head, "location"), None);
    }
    let reply = TestClient::to(http)
        .send("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")
        .reply(false);
    assert_eq!(reply.unwrap().status, 501);
    assert_eq!(count(&gateway, "redirected_total"), 0.0);
}

#[test]
fn both_addresses_serve_and_upstreams_learn_which() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("serve") + &folder.tls("");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let http = gateway.http_addr.unwrap();
    let scheme = || last_field(&origin, "x-forwarded-proto").unwrap();
    let reply = TestClient::to(http).send(request("")).reply(false).unwrap();
    assert_eq!((reply.status, &*scheme()), (200, "http"));
    let mut stream = secured(gateway.addr, None, "first.example", "");
    assert_eq!(status(&mut stream, &request("")), Some(200));
    assert_eq!(scheme(), "https");
    assert_eq!(over_http2(http, None, get("http://s/")).status(), 200);
    assert_eq!(scheme(), "http");
    let tls = Some(("first.example", None));
    assert_eq!(
        over_http2(gateway.addr, tls, get("https://s/")).status(),
        200
    );
    assert_eq!(scheme(), "https");
    assert_eq!(count(&gateway, "redirected_total"), 0.0);
}

#[test]
fn without_http_there_is_one_address() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    assert_eq!(gateway.http_addr, None);
}

/// Fields of a client that pretends to have a certificate.
const SPOOFED: &str = "Client-Cert: :AAAA:\r\nclient-cert: :AQ==:\r\nClient_Cert: :AAAA:\r\n\
                       Client-Cert-Chain: :AAAA:\r\nCLIENT_CERT_CHAIN: :AAAA:\r\n\
                       Connection: client-cert\r\n";

#[test]
fn upstreams_get_the_verified_certificate_and_no_other() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("serve") + &folder.tls(&folder.client_ca("optional"));
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let own = folder.issue();
    let encoded = base64::engine::general_purpose::STANDARD.encode(&own.der);
    let mut with = secured(gateway.addr, Some(&own), "first.example", "");
    let mut without = secured(gateway.addr, None, "first.example", "");
    for fields in ["", SPOOFED] {
        for _ in 0..2 {
            assert_eq!(status(&mut with, &request(fields)), Some(200));
            let sent = origin.last_request();
            let line = format!("client-cert: :{encoded}:\r\n");
            assert_eq!(sent.matches(&line).count(), 1, "{sent}");
            assert_eq!(sent.to_lowercase().matches("client").count(), 1, "{sent}");
        }
        assert_eq!(status(&mut without, &request(fields)), Some(200));
        let sent = origin.last_request().to_lowercase();
        assert!(!sent.contains("client"), "{sent}");
        let plain = gateway.http_addr.unwrap();
        let reply = TestClient::to(plain).send(request(fields)).reply(false);
        assert_eq!(reply.unwrap().status, 200);
        let sent = origin.last_request().to_lowercase();
        assert!(!sent.contains("client"), "{sent}");
    }
    for (made, expected) in [(Some(&own), Some(format!(":{encoded}:"))), (None, None)] {
        let spoofed = Request::get("https://s/").header("client-cert", ":AAAA:");
        let spoofed = spoofed.header("client_cert", ":AAAA:").body(Empty::new());
        let tls = Some(("first.example", made));
        assert_eq!(
            over_http2(gateway.addr, tls, spoofed.unwrap()).status(),
            200
        );
        let sent = last_field(&origin, "client-cert");
        assert_eq!(sent, expected.map(|text| text.to_lowercase()));
        assert_eq!(last_field(&origin, "client_cert"), None);
    }
}

#[test]
fn a_certificate_is_no_trailer() {
    let folder = CertificateFolder::new();
    let received = Arc::<Mutex<String>>::default();
    let log = received.clone();
    let origin = TestOrigin::start(move |line| {
        let mut piece = [0; 4096];
        let mut all = String::new();
        while !all.contains("x-sum: 1\r\n\r\n") {
            let Ok(length @ 1..) = line.stream.read(&mut piece) else {
                return;
            };
            all += &String::from_utf8_lossy(&piece[..length]).to_lowercase();
        }
        *log.lock().unwrap() = all;
        line.write(OK);
    });
    let more = plain("serve") + &folder.tls(&folder.client_ca("required"));
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let chunked = "POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\
                   Trailer: Client-Cert, X-Sum\r\n\r\n\
                   1\r\na\r\n0\r\nClient-Cert: :AAAA:\r\nX-Sum: 1\r\n\r\n";
    let mut client = TestClient::to(gateway.http_addr.unwrap());
    assert_eq!(client.send(chunked).reply(false).unwrap().status, 200);
    let received = received.lock().unwrap();
    assert!(!received.contains(":aaaa:"), "{received}");
}

#[test]
fn the_subject_of_a_certificate_identifies_an_account() {
    let folder = CertificateFolder::new();
    let (origin, log) = (TestOrigin::answering(OK), folder.path("access.log"));
    let tls = folder.tls(&folder.client_ca("optional"));
    let subject = "certificate = \"CN=rcgen self signed cert\"";
    let more =
        format!("access_log = {log:?}\n{tls}[[accounts.account]]\nname = \"ada\"\n{subject}\n");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    for own in [Some(&folder.issue()), None] {
        let mut client = secured(gateway.addr, own, "first.example", "");
        assert_eq!(status(&mut client, &request("")), Some(200));
    }
    wait_until("one of the lines names the account", || {
        let lines = std::fs::read_to_string(&log).unwrap();
        ["\"ada\"", "null"].map(|name| lines.matches(&format!("\"account\":{name}")).count())
            == [1, 1]
    });
}

#[test]
fn without_verification_only_the_fields_of_a_trusted_proxy_pass() {
    for (trusted, passes) in [("127.0.0.1", true), ("192.0.2.1", false)] {
        let origin = TestOrigin::answering(OK);
        let trust = format!("[trust]\nforwarded = [\"{trusted}\"]\n");
        let gateway = start(config(&[origin.address], &trust)).unwrap();
        let fields = "Client-Cert: :AAAA:\r\nClient-Cert-Chain: :AQ==:\r\nClient_Cert: :AA==:\r\n";
        let reply = TestClient::new(&gateway).send(request(fields)).reply(false);
        assert_eq!(reply.unwrap().status, 200);
        let sent = |name| last_field(&origin, name);
        let wanted = |value: &str| passes.then(|| value.to_owned());
        assert_eq!(sent("client-cert"), wanted(":aaaa:"));
        assert_eq!(sent("client-cert-chain"), wanted(":aq==:"));
        assert_eq!(sent("client_cert"), None);
    }
}

#[test]
fn the_stated_client_is_forwarded() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("serve") + &folder.tls("") + "[trust]\nproxy_protocol = [\"127.0.0.1\"]\n";
    let gateway = start(config(&[origin.address], &more)).unwrap();
    let line = "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n";
    let mut stream = secured(gateway.addr, None, "first.example", line);
    assert_eq!(status(&mut stream, &request("")), Some(200));
    assert_eq!(
        last_field(&origin, "x-forwarded-for").as_deref(),
        Some("192.0.2.7")
    );
    assert_eq!(
        last_field(&origin, "x-forwarded-proto").as_deref(),
        Some("https")
    );
    let mut client = TestClient::to(gateway.http_addr.unwrap());
    client.send(format!("PROXY TCP6 2001:db8::7 ::1 1 2\r\n{}", request("")));
    assert_eq!(client.reply(false).unwrap().status, 200);
    assert_eq!(
        last_field(&origin, "x-forwarded-for").as_deref(),
        Some("2001:db8::7")
    );
    assert_eq!(
        last_field(&origin, "x-forwarded-proto").as_deref(),
        Some("http")
    );
    assert!(
        TestClient::new(&gateway)
            .send(request(""))
            .rest()
            .is_empty()
    );
    assert_eq!(
        count(&gateway, "connections_total{event=\"proxy-header-error\"}"),
        1.0
    );
}

fn reload(gateway: &RunningGateway, origin: &TestOrigin, more: &str) -> Result<(), GatewayError> {
    gateway.reload(config(&[origin.address], more))
}

#[test]
fn certificates_by_name_change_under_open_connections() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], &folder.tls(""))).unwrap();
    let open = |name: &str| secured(gateway.addr, None, name, "");
    let first = shown(&mut open("shop.example"));
    let mut before = open("first.example");
    assert!(shown(&mut before) == first);
    let both = folder.tls("") + &folder.further("shop");
    let second = folder.renew("shop");
    reload(&gateway, &origin, &both).unwrap();
    assert!(shown(&mut open("shop.example")) == second);
    assert!(shown(&mut open("first.example")) == first);
    assert!(shown(&mut open("other.example")) == first);
    // One unusable file refuses everything, the renewed first certificate as well.
    let (third, shop) = (folder.renew("first"), folder.path("shop-cert.pem"));
    let kept = std::fs::read(&shop).unwrap();
    std::fs::write(&shop, "").unwrap();
    let error = reload(&gateway, &origin, &both).unwrap_err().to_string();
    assert!(error.contains("shop-cert.pem"), "{error}");
    let missing = both.clone() + &folder.further("missing");
    std::fs::write(&shop, &kept).unwrap();
    let error = reload(&gateway, &origin, &missing).unwrap_err().to_string();
    assert!(error.contains("missing-cert.pem"), "{error}");
    assert!(shown(&mut open("first.example")) == first);
    assert!(shown(&mut open("shop.example")) == second);
    reload(&gateway, &origin, &both).unwrap();
    assert!(shown(&mut open("first.example")) == third);
    reload(&gateway, &origin, &folder.tls("")).unwrap();
    assert!(shown(&mut open("shop.example")) == third);
    assert!(shown(&mut before) == first);
}

#[test]
fn the_authority_of_clients_changes_for_connections_that_follow() {
    let (folder, others) = (CertificateFolder::new(), CertificateFolder::new());
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], &folder.tls(""))).unwrap();
    let (own, other) = (folder.issue(), others.issue());
    let served = |made: Option<&ClientCertificate>| {
        let mut stream = secured(gateway.addr, made, "first.example", "");
        status(&mut stream, &request(""))
    };
    let mut before = secured(gateway.addr, None, "first.example", "");
    assert_eq!(status(&mut before, &request("")), Some(200));
    reload(
        &gateway,
        &origin,
        &folder.tls(&folder.client_ca("required")),
    )
    .unwrap();
    assert_eq!(served(Some(&own)), Some(200));
    assert_eq!(served(Some(&other)), None);
    assert_eq!(served(None), None);
    wait_until("both are counted", || {
        count(
            &gateway,
            "connections_total{event=\"client-certificate-failure\"}",
        ) >= 2.0
    });
    assert_eq!(status(&mut before, &request("")), Some(200));
    // A bad file changes nothing.
    std::fs::write(others.path("authority.pem"), "").unwrap();
    let bad = folder.tls(&others.client_ca("optional"));
    let error = reload(&gateway, &origin, &bad).unwrap_err().to_string();
    assert!(error.contains("authority.pem"), "{error}");
    assert_eq!((served(Some(&own)), served(None)), (Some(200), None));
    reload(
        &gateway,
        &origin,
        &folder.tls(&folder.client_ca("optional")),
    )
    .unwrap();
    assert_eq!((served(Some(&other)), served(None)), (None, Some(200)));
    reload(&gateway, &origin, &folder.tls("")).unwrap();
    assert_eq!(served(Some(&other)), Some(200));
}

#[test]
fn listeners_and_trust_cannot_change() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let more = plain("redirect") + &folder.tls("");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    for (other, name) in [
        (plain("serve") + &folder.tls(""), "http"),
        (folder.tls(""), "http"),
        (
            more.clone() + "[trust]\nproxy_protocol = [\"::1\"]\n",
            "trust.proxy_protocol",
        ),
    ] {
        let error = reload(&gateway, &origin, &other).unwrap_err();
        assert!(
            matches!(error, GatewayError::Fixed(fixed) if fixed == name),
            "{error}"
        );
    }
    reload(&gateway, &origin, &more).unwrap();
}

#[test]
fn a_file_that_cannot_be_used_is_named_before_the_start() {
    let folder = CertificateFolder::new();
    let origin = TestOrigin::answering(OK);
    let check = |more: &str| posthaste_gateway::check(config(&[origin.address], more));
    check(&(folder.tls(&folder.client_ca("required")) + &folder.further("shop"))).unwrap();
    let key_as_authority = format!("client_ca = {:?}", folder.path("shop-key.pem"));
    for (more, file) in [
        (folder.tls(&key_as_authority), "shop-key.pem"),
        (
            folder.tls("") + &folder.further("missing"),
            "missing-cert.pem",
        ),
    ] {
        let error = check(&more).unwrap_err().to_string();
        assert!(error.contains(file), "{error}");
    }
}

//! Tunnels of clients with HTTP/2 (RFC 8441), and tunnels through TLS.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use posthaste_gateway::{RunningGateway, start};
use posthaste_serve::ClientTls;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::spawn_local;

use crate::http2_support::{LocalExecutor, block_on};
use crate::support::{OK, TestClient, TestOrigin, config, field, gateway, wait_until};
use crate::tunnels::{SWITCHED, echo, ended, ignored, metric, switches};

type Sender = SendRequest<Empty<Bytes>>;

/// A connection of HTTP/2 that has exchanged one request, and so the settings.
async fn connect(gateway: &RunningGateway) -> Sender {
    let stream = tokio::net::TcpStream::connect(gateway.addr).await.unwrap();
    over(stream).await
}

async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Sender {
    let builder = http2::Builder::new(LocalExecutor);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    spawn_local(connection);
    let request = Request::get("http://s/plain").body(Empty::new()).unwrap();
    let reply = sender.send_request(request).await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    sender
}

/// Sends an extended CONNECT.
async fn ask(sender: &mut Sender, protocol: &'static str, version: &str) -> Response<Incoming> {
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri("http://s/chat?x")
        .header("sec-websocket-version", version)
        .header("sec-websocket-key", "of no use")
        .header("sec-websocket-protocol", "soap")
        .extension(Protocol::from_static(protocol))
        .body(Empty::new());
    sender.send_request(request.unwrap()).await.unwrap()
}

async fn open(sender: &mut Sender) -> TokioIo<Upgraded> {
    let reply = ask(sender, "websocket", "13").await;
    assert_eq!(reply.status(), StatusCode::OK);
    for gone in ["sec-websocket-accept", "connection", "upgrade"] {
        assert!(!reply.headers().contains_key(gone), "{reply:?}");
    }
    TokioIo::new(hyper::upgrade::on(reply).await.unwrap())
}

/// An upstream that serves plain requests, and echoes after a handshake with any key.
fn origin() -> TestOrigin {
    TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            let head = request.to_lowercase();
            if field(&head, "upgrade").is_none() {
                line.write(OK);
                continue;
            }
            let key = request.lines().find_map(|line| line.split_once("-key: "));
            line.write(SWITCHED.replace("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", &proof(key.unwrap().1)));
            return echo(line);
        }
    })
}

fn proof(key: &str) -> String {
    use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

#[test]
fn an_extended_connect_becomes_an_upgrade_with_a_tunnel() {
    let origin = origin();
    let gateway = gateway(&origin);
    block_on(async {
        let mut sender = connect(&gateway).await;
        let mut tunnel = open(&mut sender).await;
        let mut other = open(&mut sender).await;
        let request = origin.last_request().to_lowercase();
        assert!(request.starts_with("get /chat?x http/1.1\r\n"), "{request}");
        for (name, wanted) in [
            ("host", "s"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-protocol", "soap"),
            ("via", "2.0 posthaste"),
        ] {
            assert_eq!(field(&request, name), Some(wanted), "{request}");
        }
        assert!(!request.contains("of no use") && !request.contains(":protocol"));
        let large: Vec<u8> = (0..4_000_000_u32).map(|n| (n / 251) as u8).collect();
        let (mut reader, mut writer) = tokio::io::split(tunnel);
        let sent = large.clone();
        let writing = spawn_local(async move {
            writer.write_all(&sent).await.unwrap();
            writer
        });
        let mut back = vec![0; large.len()];
        reader.read_exact(&mut back).await.unwrap();
        assert!(back == large, "the bytes are others");
        tunnel = reader.unsplit(writing.await.unwrap());
        other.write_all(b"other").await.unwrap();
        other.read_exact(&mut back[..5]).await.unwrap();
        assert_eq!(&back[..5], b"other");
        // The end is passed on in both directions.
        tunnel.shutdown().await.unwrap();
        assert_eq!(tunnel.read(&mut back).await.unwrap(), 0);
        wait_until("one has ended", || ended(&gateway, "client-closed"));
        assert_eq!(metric(&gateway, "tunnels_open"), 1.0);
        assert_eq!(metric(&gateway, "requests_in_service"), 0.0);
        assert_eq!(switches(&gateway, "opened"), 2.0);
        // Ordinary requests of the same connection continue.
        let request = Request::get("http://s/plain").body(Empty::new()).unwrap();
        let reply = sender.send_request(request).await.unwrap();
        assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), "ok");
    });
}

#[test]
fn a_connection_lives_as_long_as_its_tunnels() {
    let origin = origin();
    let gateway = start(config(&[origin.address], "timeouts.idle = \"1s\"\n")).unwrap();
    block_on(async {
        let mut sender = connect(&gateway).await;
        let mut tunnel = open(&mut sender).await;
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        tunnel.write_all(b"x").await.unwrap();
        assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
    });
    wait_until("it has ended", || metric(&gateway, "tunnels_open") == 0.0);
}

/// Small writes of the client show that the tunnel itself is not idle.
#[test]
fn a_tunnel_of_a_stream_ends_if_its_client_takes_nothing() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            if !request.contains("pgrade") {
                line.write(OK);
                continue;
            }
            let key = request.lines().find_map(|line| line.split_once("-key: "));
            line.write(SWITCHED.replace("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", &proof(key.unwrap().1)));
            line.write(vec![0; 8 << 20]);
            return echo(line);
        }
    });
    let gateway = start(config(&[origin.address], "timeouts.write = \"1s\"\n")).unwrap();
    block_on(async {
        let mut sender = connect(&gateway).await;
        let mut tunnel = open(&mut sender).await;
        let begin = std::time::Instant::now();
        while !ended(&gateway, "client-stalled") {
            assert!(begin.elapsed() < crate::support::PATIENCE, "it goes on");
            let _ = tunnel.write_all(b"x").await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        // The connection and its other requests continue.
        let request = Request::get("http://s/plain").body(Empty::new()).unwrap();
        let reply = sender.send_request(request).await.unwrap();
        assert_eq!(reply.status(), StatusCode::OK);
    });
}

#[test]
fn a_stop_cuts_the_tunnels_of_streams_after_the_grace_time() {
    let origin = origin();
    let gateway = start(config(&[origin.address], "timeouts.grace = \"3s\"\n")).unwrap();
    block_on(async {
        let mut sender = connect(&gateway).await;
        let mut tunnel = open(&mut sender).await;
        gateway.stop();
        let mut rest = Vec::new();
        let _ = tunnel.read_to_end(&mut rest).await;
        assert_eq!(rest, b"");
    });
    wait_until("it is counted", || ended(&gateway, "stopped"));
}

#[test]
fn an_extended_connect_without_a_tunnel_is_refused() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    block_on(async {
        let mut sender = connect(&gateway).await;
        let before = origin.request_count();
        for (protocol, version, status) in [
            ("chat", "13", StatusCode::NOT_IMPLEMENTED),
            ("h2c", "13", StatusCode::NOT_IMPLEMENTED),
            ("websocket", "8", StatusCode::BAD_REQUEST),
        ] {
            let reply = ask(&mut sender, protocol, version).await;
            assert_eq!(reply.status(), status, "{protocol}");
        }
        assert_eq!(origin.request_count(), before);
        assert_eq!(ignored(&gateway, "protocol"), 2.0);
        assert_eq!(ignored(&gateway, "version"), 1.0);
        // A success that is no switch would open a tunnel.
        let reply = ask(&mut sender, "websocket", "13").await;
        assert_eq!(reply.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(switches(&gateway, "refused"), 1.0);
        let plain = Request::connect("s:80").body(Empty::new()).unwrap();
        let reply = sender.send_request(plain).await.unwrap();
        assert_eq!(reply.status(), StatusCode::NOT_IMPLEMENTED);
    });
}

#[test]
fn the_page_of_offers_answers_no_extended_connect() {
    let origin = origin();
    let gateway = start(config(
        &[origin.address],
        "[protection]\npolicy = \"prices\"\n",
    ))
    .unwrap();
    block_on(async {
        let mut sender = connect(&gateway).await;
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri("http://s/.well-known/wsqos")
            .header("sec-websocket-version", "13")
            .extension(Protocol::from_static("websocket"))
            .body(Empty::new());
        let reply = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(reply.status(), StatusCode::OK);
        assert!(!reply.headers().contains_key("content-type"), "{reply:?}");
        let mut tunnel = TokioIo::new(hyper::upgrade::on(reply).await.unwrap());
        tunnel.write_all(b"x").await.unwrap();
        assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn a_refusal_of_the_upstream_reaches_the_stream() {
    let origin = TestOrigin::start(|line| {
        while let Some(request) = line.request() {
            line.write(if request.contains("websocket") {
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
            } else {
                OK
            });
        }
    });
    let gateway = gateway(&origin);
    block_on(async {
        let mut sender = connect(&gateway).await;
        let reply = ask(&mut sender, "websocket", "13").await;
        assert_eq!(reply.status(), StatusCode::FORBIDDEN);
        let body = reply.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "no");
    });
}

#[test]
fn the_authority_of_an_extended_connect_agrees_with_host() {
    let origin = origin();
    let gateway = gateway(&origin);
    block_on(async {
        let mut sender = connect(&gateway).await;
        for target in ["http://u@s/", "http://other/", "http://a..b/"] {
            let request = Request::builder()
                .method(Method::CONNECT)
                .uri(target)
                .header("host", "s")
                .header("sec-websocket-version", "13")
                .extension(Protocol::from_static("websocket"))
                .body(Empty::new());
            let reply = sender.send_request(request.unwrap()).await.unwrap();
            assert_eq!(reply.status(), StatusCode::BAD_REQUEST, "{target}");
        }
        assert_eq!(origin.request_count(), 1);
    });
}

/// Writes a certificate for localhost, and returns the configuration of a listener with it.
fn tls(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let cert = write("cert.pem", made.cert.pem());
    let key = write("key.pem", made.signing_key.serialize_pem());
    format!("[tls]\ncertificate = {cert:?}\nkey = {key:?}")
}

#[test]
fn tunnels_pass_through_tls_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let tls = tls(folder.path());
    let cert = folder.path().join("cert.pem");
    let origin = origin();
    let second = start(config(&[origin.address], &tls)).unwrap();
    let mut front = config(&[origin.address], &tls);
    front.routes[0].upstream = vec![format!("https://localhost:{}", second.addr.port())];
    front.routes[0].authority = Some(cert.clone());
    let first = start(front).unwrap();
    let trust = ClientTls::new("localhost", Some(&cert)).unwrap();
    block_on(async {
        let stream = posthaste_serve::connect(first.addr, Some(&trust)).await;
        let (mut reader, mut writer) = tokio::io::split(stream.unwrap());
        let handshake = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        writer.write_all(handshake.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(reader.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "));
        let large: Vec<u8> = (0..4_000_000_u32).map(|n| (n / 251) as u8).collect();
        let sent = large.clone();
        let writing = spawn_local(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
            writer
        });
        let mut back = Vec::new();
        reader.read_to_end(&mut back).await.unwrap();
        assert!(back == large, "{} bytes came back", back.len());
        writing.await.unwrap();
    });
    for gateway in [&first, &second] {
        wait_until("it has ended", || ended(gateway, "client-closed"));
    }
}

#[test]
fn a_connect_over_http_1_is_refused() {
    let origin = origin();
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send(
        "CONNECT s:80 HTTP/1.1\r\nHost: s:80\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.reply(false).unwrap().status, 501);
}
